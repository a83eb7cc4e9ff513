#include "analysis/hang/unrecorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "analysis/hang/wording.h"

namespace lockstep::hang {
namespace {

/// Ranks that recorded groups smaller than the job connect, each ascending; by their first rank.
std::vector<std::vector<int32_t>> Stages(const JobView& view) {
  std::vector<int32_t> parent(view.ranks.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&parent](int32_t rank) {
    while (parent[static_cast<size_t>(rank)] != rank) {
      parent[static_cast<size_t>(rank)] = parent[static_cast<size_t>(parent[static_cast<size_t>(rank)])];
      rank = parent[static_cast<size_t>(rank)];
    }
    return rank;
  };
  bool any = false;
  for (const GroupView& group : view.groups) {
    if (group.members.size() >= view.ranks.size() || group.members.empty()) {
      continue;
    }
    any = any || group.members.size() > 1;
    for (const int32_t member : group.members) {
      parent[static_cast<size_t>(root(member))] = root(group.members.front());
    }
  }
  if (!any) {
    return {};
  }
  std::map<int32_t, std::vector<int32_t>> by_root;
  for (const RankView& rank : view.ranks) {
    by_root[root(rank.rank)].push_back(rank.rank);
  }
  std::vector<std::vector<int32_t>> stages;
  for (auto& [first, members] : by_root) {
    stages.push_back(std::move(members));
  }
  std::sort(stages.begin(), stages.end());
  return stages;
}

}  // namespace

std::string SignOfUnrecorded(const Findings& findings, int32_t rank) {
  const JobView& view = findings.view;
  const RankView& of = view.ranks[static_cast<size_t>(rank)];
  bool on_device = false;
  for (const uint32_t g : of.groups) {
    const Track* track = view.groups[g].TrackOf(rank);
    on_device = on_device || track->on_device;
    if (track->status_counts_operations && track->last_enqueued &&
        track->newest_operation_id != evidence::kNotRecorded && *track->last_enqueued > track->newest_operation_id) {
      return fmt::format(
          "group {} has counted {} beyond the last that is recorded (a send, a receive or a monitored "
          "barrier)",
          GroupText(view.groups[g]),
          Plural(static_cast<size_t>(*track->last_enqueued - track->newest_operation_id), "operation"));
    }
  }
  if (on_device) {
    return "";
  }
  const std::vector<std::vector<int32_t>> stages = Stages(view);
  const bool equal = std::all_of(stages.begin(), stages.end(), [&](const std::vector<int32_t>& stage) {
    return stage.size() == stages.front().size();
  });
  if (stages.size() > 1 && equal && stages.front().size() > 1) {
    return fmt::format(
        "recorded groups fall into {} separate stages of {} ranks, so that traffic between stages is not "
        "recorded (Gloo records no send and no receive)",
        stages.size(), stages.front().size());
  }
  return "";
}

std::vector<int32_t> LikelyPeers(const Findings& findings, int32_t rank, bool is_send) {
  const std::vector<std::vector<int32_t>> stages = Stages(findings.view);
  for (size_t i = 0; i < stages.size(); ++i) {
    const auto place = std::find(stages[i].begin(), stages[i].end(), rank);
    if (place == stages[i].end()) {
      continue;
    }
    const auto index = static_cast<size_t>(place - stages[i].begin());
    std::vector<int32_t> peers;
    // Activations go to the next stage, gradients to the one before: both are neighbours.
    const auto add = [&](size_t stage) {
      if (stage < stages.size() && stages[stage].size() == stages[i].size()) {
        peers.push_back(stages[stage][index]);
      }
    };
    add(is_send ? i + 1 : i - 1);
    add(is_send ? i - 1 : i + 1);
    return peers;
  }
  return {};
}

std::vector<int32_t> MadeFewerUnrecorded(const Findings& findings) {
  std::vector<int32_t> ranks;
  for (const GroupView& group : findings.view.groups) {
    for (const Track& track : group.tracks) {
      const std::vector<Call>& calls = track.calls;
      if (track.on_device || calls.size() < 4) {
        continue;
      }
      const auto between = [&](size_t i) {
        const int64_t before = findings.view.EntryOf(track, calls[i - 1].entry).operation_id;
        const int64_t at = findings.view.EntryOf(track, calls[i].entry).operation_id;
        return before == evidence::kNotRecorded || at == evidence::kNotRecorded ? int64_t{0} : at - before;
      };
      const size_t last = calls.size() - 1;
      int64_t least = INT64_MAX;
      for (size_t i = 1; i < last; ++i) {
        if (calls[i].signature == calls[last].signature && calls[i - 1].signature == calls[last - 1].signature) {
          least = std::min(least, between(i));
        }
      }
      if (least != INT64_MAX && between(last) < least) {
        ranks.push_back(track.rank);
      }
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace lockstep::hang
