#include "analysis/hang/ras_reading.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace lockstep::hang {
namespace {

using evidence::RasCommunicator;
using evidence::RasReport;

constexpr int32_t kUnlisted = -1;  ///< All ranks that a text answer counts and does not list.

/// Rank -> operation -> launched.
using Counts = std::map<int32_t, std::map<std::string, int64_t>>;

Counts CountsOf(const RasCommunicator& communicator) {
  Counts counts;
  for (const evidence::RasRank& rank : communicator.ranks) {
    for (const auto& [operation, count] : rank.operation_counts) counts[rank.rank][operation] = count;
  }
  for (const auto& [rank_count, count] : communicator.unlisted_counts) {
    int64_t& most = counts[kUnlisted].try_emplace("operations", count).first->second;
    most = std::max(most, count);
  }
  return counts;
}

/// From a communicator's ranks to the job's.
class RankMap {
 public:
  explicit RankMap(const JobView& view) : view_(view) {
    for (const evidence::RankEvidence& rank : view.job->ranks) {
      if (rank.pid <= 0) continue;
      const auto [at, is_new] = by_pid_.try_emplace(rank.pid, rank.rank);
      if (!is_new) at->second = -1;  // The same number on two nodes.
    }
  }

  std::optional<int32_t> Find(const RasCommunicator& communicator, int32_t rank, int32_t pid) const {
    if (const auto found = by_pid_.find(pid); pid > 0 && found != by_pid_.end() && found->second >= 0) {
      return found->second;
    }
    const auto count = static_cast<int64_t>(view_.ranks.size());
    if (communicator.size == count && rank >= 0 && rank < count) return rank;
    return std::nullopt;
  }

  std::optional<int32_t> FindProcess(int32_t pid) const {
    const auto found = by_pid_.find(pid);
    return pid > 0 && found != by_pid_.end() && found->second >= 0 ? std::optional(found->second) : std::nullopt;
  }

 private:
  const JobView& view_;
  std::map<int32_t, int32_t> by_pid_;
};

/// The job's ranks, or the communicator's own where one of them cannot be told.
bool Translate(const RankMap& map, const RasCommunicator& communicator, std::vector<int32_t>* ranks) {
  std::vector<int32_t> translated;
  for (const int32_t rank : *ranks) {
    const auto entry = std::find_if(communicator.ranks.begin(), communicator.ranks.end(),
                                    [rank](const evidence::RasRank& one) { return one.rank == rank; });
    const int32_t pid = entry == communicator.ranks.end() ? 0 : entry->pid;
    const std::optional<int32_t> found = map.Find(communicator, rank, pid);
    if (!found) return false;
    translated.push_back(*found);
  }
  std::sort(translated.begin(), translated.end());
  *ranks = std::move(translated);
  return true;
}

struct Seen {
  const RasReport* report;
  const RasCommunicator* communicator;
  Counts counts;
};

/// What the counts differ in: in how many, else in which.
std::optional<RasLag> FindLag(const Counts& counts) {
  if (counts.size() < 2) return std::nullopt;
  RasLag lag;
  std::map<int32_t, int64_t> totals;
  std::map<std::string, std::pair<int64_t, int64_t>> ranges;  // Operation -> least, most.
  for (const auto& [rank, operations] : counts) {
    for (const auto& [operation, count] : operations) {
      totals[rank] += count;
      const auto [at, is_new] = ranges.try_emplace(operation, count, count);
      if (!is_new) at->second = {std::min(at->second.first, count), std::max(at->second.second, count)};
    }
  }
  std::erase_if(ranges, [](const auto& range) { return range.second.first == range.second.second; });
  if (ranges.empty()) return std::nullopt;
  const auto by_total = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::minmax_element(totals.begin(), totals.end(), by_total);
  lag.least = least->second;
  lag.most = most->second;
  lag.operation = "operations";
  lag.differs = lag.least == lag.most;
  if (lag.differs) {
    std::map<std::map<std::string, int64_t>, std::vector<int32_t>> parties;
    for (const auto& [rank, operations] : counts) parties[operations].push_back(rank);
    const auto few = std::min_element(parties.begin(), parties.end(),
                                      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    lag.odd = few->second;
  } else {
    if (ranges.size() == 1) {
      lag.operation = ranges.begin()->first;
      std::tie(lag.least, lag.most) = ranges.begin()->second;
    }
    for (const auto& [rank, total] : totals) {
      if (total < most->second && rank != kUnlisted) lag.late.push_back(rank);
    }
    if (lag.late.empty()) return std::nullopt;
  }
  return lag;
}

void ReadLags(const RankMap& map, const std::vector<const RasReport*>& reports, RasReading* reading) {
  std::map<std::string, std::vector<Seen>> communicators;
  for (const RasReport* report : reports) {
    for (const RasCommunicator& communicator : report->communicators) {
      Counts counts = CountsOf(communicator);
      if (!counts.empty()) communicators[communicator.hash].push_back({report, &communicator, std::move(counts)});
    }
  }
  for (const auto& [hash, seen] : communicators) {
    const Seen& last = seen.back();
    std::optional<RasLag> lag = FindLag(last.counts);
    if (!lag) continue;
    const Seen* first = &last;
    for (auto before = seen.rbegin() + 1; before != seen.rend() && before->counts == last.counts; ++before) {
      ++lag->answers;
      first = &*before;
    }
    if (first->report->collected_unix_ns > 0) {
      lag->over_ns = last.report->collected_unix_ns - first->report->collected_unix_ns;
    }
    lag->communicator = hash;
    lag->source = last.report->source;
    if (last.counts.contains(kUnlisted)) {
      // The members that are not listed are the others of its size.
      for (int32_t rank = 0; rank < std::min<int64_t>(last.communicator->size, 1 << 20); ++rank) {
        lag->members.push_back(rank);
      }
    } else {
      for (const auto& [rank, counts] : last.counts) lag->members.push_back(rank);
    }
    std::vector<int32_t> late = lag->late;
    std::vector<int32_t> odd = lag->odd;
    std::vector<int32_t> members = lag->members;
    lag->is_mapped = Translate(map, *last.communicator, &late) && Translate(map, *last.communicator, &odd) &&
                     Translate(map, *last.communicator, &members);
    if (lag->is_mapped) {
      lag->late = std::move(late);
      lag->odd = std::move(odd);
      lag->members = std::move(members);
    }
    reading->lags.push_back(*std::move(lag));
  }
}

void AddLoss(RasLoss loss, RasReading* reading) {
  for (RasLoss& known : reading->losses) {
    const bool same =
        loss.is_mapped == known.is_mapped &&
        (loss.is_mapped ? loss.rank == known.rank
                        : loss.communicator == known.communicator && loss.rank == known.rank && loss.pid == known.pid);
    if (!same) continue;
    known.is_dead = known.is_dead || loss.is_dead;
    return;
  }
  reading->losses.push_back(std::move(loss));
}

void ReadLosses(const RankMap& map, const std::vector<const RasReport*>& reports, RasReading* reading) {
  std::map<int32_t, int32_t> ranks_of_pids;  // As RAS itself tells them.
  // The newest answer counts: who answers again is not lost.
  std::map<std::string, const RasReport*> newest;
  for (const RasReport* report : reports) {
    for (const RasCommunicator& communicator : report->communicators) newest[communicator.hash] = report;
  }
  for (const RasReport* report : reports) {
    for (const RasCommunicator& communicator : report->communicators) {
      if (newest[communicator.hash] != report) continue;
      std::vector<int32_t> all;
      for (const evidence::RasRank& rank : communicator.ranks) all.push_back(rank.rank);
      const auto add = [&](int32_t number, bool is_dead) {
        RasLoss loss{.rank = number, .is_dead = is_dead, .communicator = communicator.hash, .source = report->source};
        for (const evidence::RasRank& rank : communicator.ranks) {
          if (rank.rank == number) {
            loss.pid = rank.pid;
            loss.host = rank.host;
          }
        }
        std::vector<int32_t> one = {number};
        loss.is_mapped = Translate(map, communicator, &one);
        std::vector<int32_t> peers = all;
        std::erase(peers, number);
        if (loss.is_mapped) {
          loss.rank = one.front();
          if (loss.pid > 0) ranks_of_pids[loss.pid] = loss.rank;
          if (Translate(map, communicator, &peers)) loss.peers = std::move(peers);
        }
        AddLoss(std::move(loss), reading);
      };
      for (const int32_t rank : communicator.missing_ranks) add(rank, false);
      for (const int32_t rank : communicator.dead_ranks) add(rank, true);
    }
  }
  for (const RasReport* report : reports) {
    for (const evidence::RasPeer& peer : report->dead_peers) {
      RasLoss loss{.is_dead = true, .pid = peer.pid, .host = peer.host, .source = report->source};
      const auto told = ranks_of_pids.find(peer.pid);
      const std::optional<int32_t> rank =
          told != ranks_of_pids.end() ? std::optional(told->second) : map.FindProcess(peer.pid);
      loss.is_mapped = rank.has_value();
      loss.rank = rank.value_or(-1);
      AddLoss(std::move(loss), reading);
    }
  }
}

}  // namespace

RasReading ReadRas(const JobView& view) {
  RasReading reading;
  if (view.job->ras.empty()) return reading;
  std::vector<const RasReport*> reports;
  for (const RasReport& report : view.job->ras) reports.push_back(&report);
  const bool timed =
      std::all_of(reports.begin(), reports.end(), [](const auto* one) { return one->collected_unix_ns > 0; });
  if (timed) {
    std::stable_sort(reports.begin(), reports.end(),
                     [](const auto* a, const auto* b) { return a->collected_unix_ns < b->collected_unix_ns; });
  }
  const RankMap map(view);
  ReadLags(map, reports, &reading);
  ReadLosses(map, reports, &reading);
  std::set<int32_t> late;
  std::set<int32_t> waiting;
  for (const RasLag& lag : reading.lags) {
    if (!lag.is_mapped || !lag.StandsStill() || lag.differs) continue;
    late.insert(lag.late.begin(), lag.late.end());
    for (const int32_t rank : lag.members) {
      if (!std::binary_search(lag.late.begin(), lag.late.end(), rank)) waiting.insert(rank);
    }
  }
  std::set_difference(late.begin(), late.end(), waiting.begin(), waiting.end(), std::back_inserter(reading.laggards));
  return reading;
}

}  // namespace lockstep::hang
