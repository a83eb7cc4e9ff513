#include "analysis/late_activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/host_role.h"
#include "analysis/host_time.h"
#include "analysis/interval_union.h"
#include "analysis/rank_map.h"
#include "analysis/rank_passes.h"
#include "base/median.h"

namespace lockstep::analysis {
namespace {

constexpr size_t kMaxSpells = 64;
constexpr size_t kMaxOthers = 16;
constexpr size_t kMaxActivities = 5;
constexpr int64_t kMinimumExcessNs = 1'000;
constexpr int64_t kMinimumExcessShare = 50;  // an excess below a 50th of the whole explains nothing

using ActivityKey = std::pair<LateCause, NameId>;
/// Of one arrival: time by what it went into, one value per rank looked at.
using TimesByActivity = std::map<ActivityKey, std::vector<int64_t>>;
/// The same of one rank.
using RankTable = std::map<ActivityKey, int64_t>;

/// One of the ranks looked at: its stretches, by arrival.
struct LateRank {
  size_t rank_index = 0;
  std::vector<uint8_t> present;
  std::vector<LateWindow> windows;
  std::set<std::pair<int64_t, int64_t>> issuers = {};  ///< (process, thread) that issued the collectives.
};

/// Length of [piece] outside `cover`, which is sorted and disjoint.
int64_t LengthOutside(Interval piece, const std::vector<Interval>& cover) {
  int64_t length = piece.end_ns - piece.start_ns;
  auto at = std::lower_bound(cover.begin(), cover.end(), piece.start_ns,
                             [](const Interval& interval, int64_t time_ns) { return interval.end_ns <= time_ns; });
  for (; at != cover.end() && at->start_ns < piece.end_ns; ++at) {
    length -= std::min(at->end_ns, piece.end_ns) - std::max(at->start_ns, piece.start_ns);
  }
  return length;
}

/// Measures one rank's stretches into a table per arrival.
class LateRankMeter {
 public:
  LateRankMeter(const RunContext& shared, const LateRank& late)
      : shared_(shared),
        trace_(shared.run->ranks[late.rank_index]),
        late_(late),
        tables_(late.windows.size()),
        roles_(shared.run->names),
        issuers_(late.issuers) {}

  std::vector<RankTable> Measure() {
    if (trace_.HasDeviceEvents()) MeasureDevice();
    MeasureHost();
    return std::move(tables_);
  }

 private:
  void Add(size_t arrival, LateCause cause, NameId name, int64_t duration_ns) {
    if (duration_ns <= 0) return;
    tables_[arrival][{cause, name}] += duration_ns;
  }

  void MeasureDevice() {
    for (size_t k = 0; k < late_.windows.size(); ++k) {
      if (!late_.present[k]) continue;
      const Interval window = late_.windows[k].device;
      IntervalUnion busy;
      for (const model::Track& track : trace_.tracks) {
        if (track.lane == model::Lane::kDevice) MeasureStream(k, track.events, window, &busy);
      }
      Add(k, LateCause::kDeviceIdle, {}, window.end_ns - window.start_ns - busy.Length());
    }
  }

  void MeasureStream(size_t arrival, const model::EventColumns& events, Interval window, IntervalUnion* busy) {
    // Events of a stream follow each other, so only the one before the window can reach into it.
    const auto first = std::lower_bound(events.start_ns.begin(), events.start_ns.end(), window.start_ns);
    size_t i = static_cast<size_t>(first - events.start_ns.begin());
    if (i > 0) --i;
    for (; i < events.size() && events.start_ns[i] < window.end_ns; ++i) {
      const Interval part = {std::max(events.start_ns[i], window.start_ns), std::min(events.end_ns(i), window.end_ns)};
      if (part.start_ns >= part.end_ns) continue;
      busy->Add(part.start_ns, part.end_ns);
      const uint32_t name = events.name[i].value;
      if (name < shared_.is_communication.size() && shared_.is_communication[name]) continue;
      const bool is_kernel = events.category[i] == model::Category::kKernel;
      Add(arrival, is_kernel ? LateCause::kDeviceCompute : LateCause::kDeviceCopy, {}, part.end_ns - part.start_ns);
    }
  }

  /// Operators and annotations of all threads by their own time; Python frames of the issuing and the stepping threads
  /// where no operator runs; and what is left.
  void MeasureHost() {
    std::vector<Interval> windows;
    std::vector<size_t> arrivals;
    for (size_t k = 0; k < late_.windows.size(); ++k) {
      const Interval window = late_.windows[k].host;
      if (!late_.present[k] || window.start_ns >= window.end_ns) continue;
      windows.push_back(window);
      arrivals.push_back(k);
    }
    if (windows.empty()) return;
    std::vector<IntervalUnion> recorded(windows.size());
    std::map<std::pair<int64_t, int64_t>, std::vector<Interval>> operators;
    const bool has_python = std::any_of(trace_.tracks.begin(), trace_.tracks.end(), [](const model::Track& track) {
      return track.lane == model::Lane::kPython && !track.events.empty();
    });
    for (const model::Track& track : trace_.tracks) {
      if (track.lane != model::Lane::kOperators) continue;
      const std::pair thread(track.process_id, track.thread_id);
      VisitHostTime(track.events, roles_, windows, [&](const HostPiece& piece) {
        if (piece.name.value == 0) return;
        if (roles_[piece.name] == HostRole::kStep) {
          issuers_.insert(thread);
          return;
        }
        recorded[piece.window].Add(piece.start_ns, piece.end_ns);
        if (has_python) Extend(&operators[thread], piece);
        Count(arrivals[piece.window], piece, piece.end_ns - piece.start_ns);
      });
      Flush();
    }
    for (const model::Track& track : trace_.tracks) {
      const std::pair thread(track.process_id, track.thread_id);
      if (track.lane != model::Lane::kPython || issuers_.count(thread) == 0) continue;
      const std::vector<Interval>& covered = operators[thread];
      VisitHostTime(track.events, roles_, windows, [&](const HostPiece& piece) {
        if (piece.name.value == 0) return;
        recorded[piece.window].Add(piece.start_ns, piece.end_ns);
        Count(arrivals[piece.window], piece, LengthOutside({piece.start_ns, piece.end_ns}, covered));
      });
      Flush();
    }
    for (size_t w = 0; w < windows.size(); ++w) {
      Add(arrivals[w], LateCause::kNothingRecorded, {}, windows[w].end_ns - windows[w].start_ns - recorded[w].Length());
    }
  }

  /// Pieces come window by window; their sums by name are kept in an array until the window is left.
  void Count(size_t arrival, const HostPiece& piece, int64_t duration_ns) {
    if (arrival != counted_arrival_) Flush();
    counted_arrival_ = arrival;
    const size_t slot = 2 * piece.name.value + (piece.in_data_loader ? 1 : 0);
    if (counted_ns_.empty()) counted_ns_.resize(2 * size_t{shared_.run->names.size()});
    if (counted_ns_[slot] == 0) counted_slots_.push_back(slot);
    counted_ns_[slot] += duration_ns;
  }

  void Flush() {
    for (const size_t slot : counted_slots_) {
      const LateCause cause = slot % 2 == 1 ? LateCause::kDataLoading : LateCause::kHost;
      Add(counted_arrival_, cause, NameId{static_cast<uint32_t>(slot / 2)}, std::exchange(counted_ns_[slot], 0));
    }
    counted_slots_.clear();
  }

  /// Pieces of a thread come in order of time, so neighbours grow together.
  static void Extend(std::vector<Interval>* covered, const HostPiece& piece) {
    if (!covered->empty() && covered->back().end_ns == piece.start_ns) {
      covered->back().end_ns = piece.end_ns;
    } else {
      covered->push_back({piece.start_ns, piece.end_ns});
    }
  }

  const RunContext& shared_;
  const model::RankTrace& trace_;
  const LateRank& late_;
  std::vector<RankTable> tables_;
  HostRoles roles_;
  std::set<std::pair<int64_t, int64_t>> issuers_;
  size_t counted_arrival_ = 0;
  std::vector<int64_t> counted_ns_;    // by name, and whether in a data loader
  std::vector<size_t> counted_slots_;  // those that are not 0; a slot may come twice, with 0 the second time
};

struct LateActivityPass {
  static constexpr std::string_view kName = "late_activity";
  using Args = std::vector<LateRank>;
  using Partial = std::vector<RankTable>;
  static Partial Map(const RunContext& shared, size_t rank_index, const Args& args) {
    const auto own = std::find_if(args.begin(), args.end(),
                                  [rank_index](const LateRank& late) { return late.rank_index == rank_index; });
    return own != args.end() ? LateRankMeter(shared, *own).Measure() : Partial();
  }
};

std::vector<LateRank> ByRank(const LateWindows& windows, const Collectives& collectives) {
  std::vector<LateRank> ranks;
  for (size_t slot = 0; slot < windows.ranks.size(); ++slot) {
    LateRank rank = {.rank_index = windows.ranks[slot], .present = {}, .windows = {}};
    for (const LateArrival& arrival : windows.arrivals) {
      rank.present.push_back(arrival.present[slot]);
      rank.windows.push_back(arrival.windows[slot]);
      if (!arrival.present[slot]) continue;
      for (const CollectiveMember& member : collectives.instances[arrival.instance].members) {
        if (member.rank_index == rank.rank_index && member.issue) {
          rank.issuers.emplace(member.issue->process_id, member.issue->thread_id);
        }
      }
    }
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

/// Own value less the median of the other members that are present.
int64_t Excess(const std::vector<int64_t>& values, const std::vector<uint8_t>& present) {
  std::vector<int64_t> others;
  for (size_t slot = 1; slot < values.size(); ++slot) {
    if (present[slot]) others.push_back(values[slot]);
  }
  if (others.empty()) return 0;
  return values.front() - LowerMedian(&others);
}

std::string ActivityName(const ActivityKey& key, const model::NameTable& names) {
  switch (key.first) {
    case LateCause::kNothingRecorded: return "nothing recorded on the CPU";
    case LateCause::kDeviceCompute: return "compute kernels";
    case LateCause::kDeviceCopy: return "copies and sets";
    case LateCause::kDeviceIdle: return "device idle";
    case LateCause::kDataLoading: return fmt::format("data loading: {}", names[key.second]);
    case LateCause::kHost: break;
  }
  return std::string(names[key.second]);
}

}  // namespace

void AddLateActivityPasses(RankPasses* passes) { passes->Add<LateActivityPass>(); }

const char* LateCauseName(LateCause cause) {
  switch (cause) {
    case LateCause::kDataLoading: return "data_loading";
    case LateCause::kHost: return "host";
    case LateCause::kNothingRecorded: return "nothing_recorded";
    case LateCause::kDeviceCompute: return "device_compute";
    case LateCause::kDeviceCopy: return "device_copy";
    case LateCause::kDeviceIdle: return "device_idle";
  }
  return "host";
}

std::vector<LateActivity> FindLateActivities(const RunContext& shared, const Collectives& collectives,
                                             size_t rank_index, const std::vector<LateSpell>& spells) {
  std::vector<LateSpell> costliest(spells.begin(),
                                   spells.begin() + static_cast<std::ptrdiff_t>(std::min(spells.size(), kMaxSpells)));
  const LateWindows windows = FindLateWindows(*shared.run, collectives, rank_index, std::move(costliest), kMaxOthers);
  std::vector<TimesByActivity> tables(windows.arrivals.size());
  const auto measured = MapRanks<LateActivityPass>(shared, ByRank(windows, collectives), windows.ranks);
  for (size_t slot = 0; slot < measured.size(); ++slot) {
    for (size_t k = 0; k < measured[slot].size(); ++k) {
      for (const auto& [key, duration_ns] : measured[slot][k]) {
        std::vector<int64_t>& values = tables[k][key];
        values.resize(windows.ranks.size(), 0);
        values[slot] += duration_ns;
      }
    }
  }

  std::map<ActivityKey, int64_t> excess;
  int64_t whole_ns = 0;
  for (size_t k = 0; k < tables.size(); ++k) {
    const LateArrival& arrival = windows.arrivals[k];
    for (auto& [key, values] : tables[k]) {
      values.resize(windows.ranks.size(), 0);
      excess[key] += Excess(values, arrival.present);
    }
    std::vector<int64_t> lengths;
    for (const LateWindow& window : arrival.windows) lengths.push_back(window.device.end_ns - window.device.start_ns);
    whole_ns += std::max<int64_t>(Excess(lengths, arrival.present), 0);
  }
  std::vector<LateActivity> activities;
  for (const auto& [key, excess_ns] : excess) {
    if (excess_ns < std::max(kMinimumExcessNs, whole_ns / kMinimumExcessShare)) continue;
    activities.push_back({key.first, ActivityName(key, shared.run->names), excess_ns});
  }
  std::sort(activities.begin(), activities.end(), [](const LateActivity& a, const LateActivity& b) {
    return std::tie(b.excess_ns, a.cause, a.name) < std::tie(a.excess_ns, b.cause, b.name);
  });
  if (activities.size() > kMaxActivities) activities.resize(kMaxActivities);
  return activities;
}

}  // namespace lockstep::analysis
