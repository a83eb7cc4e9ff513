#include <algorithm>
#include <map>
#include <set>

#include "analysis/hang/job_view.h"

namespace lockstep::hang {
namespace {

bool IsWorld(const GroupView& group) { return group.description == "default_pg" || group.name == "0"; }

/// Members that all_gather's sizes tell: output elements over input elements. 0 = not told.
size_t SizeFromGathers(const JobView& view, const GroupView& group) {
  for (const Track& track : group.tracks) {
    const evidence::FlightRecord& record = *view.ranks[track.rank_index].evidence->record;
    size_t looked = 0;
    for (auto call = track.calls.rbegin(); call != track.calls.rend() && looked < 64; ++call, ++looked) {
      const evidence::FlightEntry& entry = record.entries[call->entry];
      const Operation operation = ReadOperation(record.texts[entry.operation]);
      if (operation.kind != OperationKind::kAllGather) {
        continue;
      }
      const auto& inputs = record.size_lists[entry.input_sizes];
      const auto& outputs = record.size_lists[entry.output_sizes];
      if (inputs.size() == 1 && outputs.size() == 1 && !inputs[0].empty() && outputs[0].size() > inputs[0].size() &&
          std::equal(inputs[0].rbegin(), inputs[0].rend(), outputs[0].rbegin()) && outputs[0][0] > 0) {
        return static_cast<size_t>(outputs[0][0]);
      }
    }
  }
  return 0;
}

using Indices = std::vector<size_t>;

/// Sibling groups are one pattern shifted: [0, 1], [2, 3] or [0, 2], [1, 3]. Completes `members` from `free` ranks
/// where just one shift fits.
bool CompleteByPattern(const std::vector<int32_t>& pattern, const std::set<int32_t>& free,
                       std::vector<int32_t>& members) {
  std::vector<int32_t> found;
  for (const int32_t anchor : pattern) {
    const int32_t shift = members.front() - anchor;
    std::vector<int32_t> shifted;
    bool fits = true;
    for (const int32_t rank : pattern) {
      const int32_t moved = rank + shift;
      fits = fits && (std::binary_search(members.begin(), members.end(), moved) || free.contains(moved));
      shifted.push_back(moved);
    }
    fits = fits && std::includes(shifted.begin(), shifted.end(), members.begin(), members.end());
    if (!fits) {
      continue;
    }
    if (!found.empty() && found != shifted) {
      return false;
    }
    found = shifted;
  }
  if (found.empty()) {
    return false;
  }
  members = found;
  return true;
}

/// Ranks without a record that sibling groups lack.
void CompleteSiblings(JobView& view, const Indices& siblings) {
  std::set<int32_t> free;
  for (const RankView& rank : view.ranks) {
    if (!rank.has_record) {
      free.insert(rank.rank);
    }
  }
  size_t size = 0;
  for (const size_t index : siblings) {
    const GroupView& group = view.groups[index];
    size = std::max({size, group.members.size(), SizeFromGathers(view, group)});
    for (const int32_t member : group.members) {
      free.erase(member);
    }
  }
  const std::vector<int32_t>* pattern = nullptr;
  Indices deficient;
  size_t lacking = 0;
  for (const size_t index : siblings) {
    if (view.groups[index].members.size() == size) {
      pattern = &view.groups[index].members;
    } else if (view.groups[index].members_inferred && !view.groups[index].members.empty()) {
      deficient.push_back(index);
      lacking += size - view.groups[index].members.size();
    }
  }
  if (free.empty() || deficient.empty()) {
    return;
  }
  for (const size_t index : deficient) {
    std::vector<int32_t>& members = view.groups[index].members;
    if (pattern != nullptr && CompleteByPattern(*pattern, free, members)) {
      continue;
    }
    if (deficient.size() == 1 && lacking == free.size()) {
      members.insert(members.end(), free.begin(), free.end());
      std::sort(members.begin(), members.end());
    }
  }
}

}  // namespace

void FindMembers(JobView& view) {
  for (GroupView& group : view.groups) {
    bool trusted = !group.group_order.empty();
    const std::set<int32_t> listed(group.group_order.begin(), group.group_order.end());
    trusted = trusted && listed.size() == group.group_order.size();
    for (const Track& track : group.tracks) {
      // A configuration without one who took part is Gloo's, overwritten by another group's.
      trusted = trusted && (listed.contains(track.rank) || (track.calls.empty() && track.p2p.empty()));
    }
    if (trusted) {
      group.members.assign(listed.begin(), listed.end());
      continue;
    }
    group.group_order.clear();
    group.members_inferred = true;
    if (IsWorld(group)) {
      for (const RankView& rank : view.ranks) {
        group.members.push_back(rank.rank);
      }
      continue;
    }
    for (const Track& track : group.tracks) {
      group.members.push_back(track.rank);
    }
  }
  std::map<std::string, Indices> by_description;
  for (size_t i = 0; i < view.groups.size(); ++i) {
    if (!view.groups[i].description.empty()) {
      by_description[view.groups[i].description].push_back(i);
    }
  }
  for (const auto& [description, siblings] : by_description) {
    CompleteSiblings(view, siblings);
  }
  std::map<std::pair<std::string, size_t>, uint32_t> classes;
  uint32_t next = 0;
  for (GroupView& group : view.groups) {
    const std::string key =
        group.description.empty() || group.description == "undefined" ? "\n" + group.name : group.description;
    const auto [place, is_new] = classes.emplace(std::make_pair(key, group.members.size()), next);
    next += is_new ? 1 : 0;
    group.siblings = place->second;
  }
}

}  // namespace lockstep::hang
