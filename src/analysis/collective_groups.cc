#include "analysis/collective_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

namespace lockstep::analysis {
namespace {

void SortUnique(std::vector<int32_t>* ranks) {
  std::sort(ranks->begin(), ranks->end());
  ranks->erase(std::unique(ranks->begin(), ranks->end()), ranks->end());
}

class Grouper {
 public:
  Grouper(const model::Run& run, size_t first, const std::vector<std::vector<CollectiveCall>>& calls)
      : run_(run), first_(first), calls_(calls), split_streams_(DefaultStreamsAgree()) {}

  std::vector<CollectiveGroup> Group() {
    for (size_t r = 0; r < calls_.size(); ++r) {
      cache_.clear();
      for (size_t i = 0; i < calls_[r].size(); ++i) groups_[Find(r, calls_[r][i])].calls[r].push_back(i);
    }
    for (const bool on_device : {true, false}) JoinUnnamed(on_device);
    std::sort(groups_.begin(), groups_.end(), [](const auto& a, const auto& b) { return a.identity < b.identity; });
    return std::move(groups_);
  }

 private:
  /// Ranks whose recorder names no group beside ranks whose recorder does (Nsight Systems beside PyTorch): where all
  /// ranks that name one name the same, of the whole job, the others' calls are of it.
  void JoinUnnamed(bool on_device) {
    const auto unnamed = by_identity_.find(on_device ? "default" : "default cpu");
    if (unnamed == by_identity_.end()) return;
    CollectiveGroup& from = groups_[unnamed->second];
    CollectiveGroup* into = nullptr;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (g == unnamed->second || kinds_[g].on_device != on_device || kinds_[g].point_to_point) continue;
      if (into != nullptr) return;
      into = &groups_[g];
    }
    if (into == nullptr || !into->size || !from.size || *into->size != *from.size) return;
    for (size_t r = 0; r < from.calls.size(); ++r) {
      if (!from.calls[r].empty() && !into->calls[r].empty()) return;
    }
    for (size_t r = 0; r < from.calls.size(); ++r) {
      if (!from.calls[r].empty()) into->calls[r] = std::move(from.calls[r]);
    }
    groups_.erase(groups_.begin() + static_cast<ptrdiff_t>(unnamed->second));
    kinds_.erase(kinds_.begin() + static_cast<ptrdiff_t>(unnamed->second));
    by_identity_.clear();
    for (size_t g = 0; g < groups_.size(); ++g) by_identity_.emplace(groups_[g].identity, g);
  }

  using CacheKey = std::tuple<uint32_t, uint32_t, uint64_t, int64_t, int, int32_t, bool>;

  static bool HasGroup(const CollectiveCall& call) { return call.group_name.value != 0 || call.communicator_id; }
  static bool IsPointToPoint(const CollectiveCall& call) {
    return call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kReceive;
  }

  /// Without metadata, a stream stands for a communicator if every rank uses the same ones.
  bool DefaultStreamsAgree() const {
    std::set<std::set<int64_t>> seen;
    for (const std::vector<CollectiveCall>& list : calls_) {
      std::set<int64_t> streams;
      for (const CollectiveCall& call : list) {
        if (call.on_device && !HasGroup(call)) streams.insert(call.stream.value);
      }
      if (!streams.empty()) seen.insert(std::move(streams));
    }
    return seen.size() == 1 && seen.begin()->size() > 1;
  }

  size_t Find(size_t r, const CollectiveCall& call) {
    const bool point_to_point = IsPointToPoint(call);
    const int64_t stream = split_streams_ && call.on_device && !HasGroup(call) ? call.stream.value : 0;
    const int direction = !point_to_point ? 0 : (call.kind == CollectiveKind::kSend ? 1 : 2);
    const CacheKey key{
        call.group_name.value,  call.group_ranks.value, call.communicator_id.value_or(0), stream, direction,
        call.peer.value_or(-1), call.on_device};
    const auto cached = cache_.find(key);
    if (cached != cache_.end()) return cached->second;
    CollectiveGroup group = Describe(r, call, stream);
    if (point_to_point) NarrowToPair(run_.ranks[first_ + r].rank.value, call, &group);
    const auto [slot, is_new] = by_identity_.emplace(group.identity, groups_.size());
    if (is_new) {
      group.calls.resize(calls_.size());
      groups_.push_back(std::move(group));
      kinds_.push_back({call.on_device, point_to_point});
    } else if (!groups_[slot->second].size) {
      groups_[slot->second].size = group.size;
    }
    cache_.emplace(key, slot->second);
    return slot->second;
  }

  CollectiveGroup Describe(size_t r, const CollectiveCall& call, int64_t stream) const {
    const model::RankTrace& trace = run_.ranks[first_ + r];
    const std::string_view name = run_.names[call.group_name];
    const std::string_view ranks_text = run_.names[call.group_ranks];
    CollectiveGroup group;
    if (!HasGroup(call)) {
      group.label = "default";
      if (stream != 0) group.label += fmt::format(" stream {}", stream);
      group.identity = group.label + (call.on_device ? "" : " cpu");
      group.size = call.group_size ? call.group_size : trace.world_size;
      if (trace.groups.size() == 1 && trace.groups.front().size && !call.group_size)
        group.size = trace.groups.front().size;
      return group;
    }
    if (const auto parsed = ParseGroupRanks(ranks_text); parsed && !parsed->empty()) {
      group.members = *parsed;
    } else {
      for (const model::ProcessGroup& described : trace.groups) {
        if (described.name == name && !described.ranks.empty()) group.members = described.ranks;
        if (described.name == name && described.size && !group.size) group.size = described.size;
      }
    }
    SortUnique(&group.members);
    if (!group.members.empty()) {
      group.size = static_cast<int32_t>(group.members.size());
    } else if (call.group_size) {
      group.size = call.group_size;
    }
    if (name.empty()) {
      group.label = group.members.empty() ? fmt::format("communicator {:#x}", *call.communicator_id)
                                          : fmt::format("[{}]", fmt::join(group.members, ", "));
    } else {
      group.label = name;
      const std::string_view description = run_.names[call.group_description];
      if (!description.empty() && description != "undefined" && description != name) {
        group.label += fmt::format(" ({})", description);
      }
    }
    group.identity =
        fmt::format("{}\x1f{}\x1f{}", name.empty() ? group.label : std::string(name),
                    group.members.empty() ? std::string(ranks_text) : fmt::format("{}", fmt::join(group.members, ",")),
                    call.on_device ? "" : "cpu");
    return group;
  }

  /// A send on one rank and the receive on its peer are one group of two.
  static void NarrowToPair(int32_t own, const CollectiveCall& call, CollectiveGroup* group) {
    if (!call.peer) {
      group->identity += fmt::format("\x1f{} of {}", CollectiveKindName(call.kind), own);
      group->peer_unknown = true;
      group->members = {own};
      group->size = 2;
      return;
    }
    const int32_t from = call.kind == CollectiveKind::kSend ? own : *call.peer;
    const int32_t to = call.kind == CollectiveKind::kSend ? *call.peer : own;
    group->identity += fmt::format("\x1f{:08}>{:08}", from, to);
    group->label += fmt::format(" {}->{}", from, to);
    group->members = {from, to};
    SortUnique(&group->members);
    group->size = 2;
  }

  const model::Run& run_;
  const size_t first_;
  const std::vector<std::vector<CollectiveCall>>& calls_;
  const bool split_streams_;
  struct Kind {
    bool on_device = false;
    bool point_to_point = false;
  };
  std::vector<CollectiveGroup> groups_;
  std::vector<Kind> kinds_;  // parallel to groups_
  std::map<std::string, size_t> by_identity_;
  std::map<CacheKey, size_t> cache_;  // of one rank
};

}  // namespace

std::optional<std::vector<int32_t>> ParseGroupRanks(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  std::vector<int32_t> ranks;
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size() - 1;
  while (at != end) {
    while (at != end && (*at == ' ' || *at == ',')) ++at;
    if (at == end) break;
    int32_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 0) return std::nullopt;
    ranks.push_back(value);
    at = next;
  }
  return ranks;
}

std::vector<CollectiveGroup> GroupCollectiveCalls(const model::Run& run, size_t first_rank_index,
                                                  const std::vector<std::vector<CollectiveCall>>& calls) {
  return Grouper(run, first_rank_index, calls).Group();
}

}  // namespace lockstep::analysis
