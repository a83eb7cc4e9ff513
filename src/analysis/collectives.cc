#include "analysis/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "analysis/collective_calls.h"
#include "analysis/collective_groups.h"
#include "analysis/collective_size.h"
#include "analysis/mix_hash.h"
#include "analysis/pass.h"
#include "analysis/sequence_alignment.h"

namespace lockstep::analysis {
namespace {

using Calls = std::vector<std::vector<CollectiveCall>>;  // per rank of a window, by start

/// Operations that one kernel may stand for when its launch is not in the file are one class.
uint64_t LooseClass(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive:
    case CollectiveKind::kSendReceive: return 100;
    default: return static_cast<uint64_t>(kind);
  }
}

/// True if every member passes the same element counts, so that they tell one call from the next.
bool SizesAgreeAcrossMembers(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
         kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kBroadcast ||
         kind == CollectiveKind::kReduce;
}

SequenceToken TokenOf(const CollectiveCall& call, bool use_steps) {
  SequenceToken token;
  token.loose = LooseClass(call.kind);
  token.exact = MixHash(token.loose, call.dtype.value);
  if (SizesAgreeAcrossMembers(call.kind)) {
    token.exact = MixHash(token.exact, static_cast<uint64_t>(call.in_elements.value_or(-1)));
    token.exact = MixHash(token.exact, static_cast<uint64_t>(call.out_elements.value_or(-1)));
  }
  if (use_steps && call.step) token.exact = MixHash(token.exact, static_cast<uint64_t>(*call.step) + 1);
  token.start_ns = call.start_ns;
  token.time_ns = call.start_ns + call.duration_ns;
  return token;
}

/// Calls of one group that are one collective: per rank of the window, an index into its calls, or none.
struct JoinedCall {
  int64_t sequence = 0;
  std::vector<std::pair<size_t, size_t>> members;  // (rank within the window, call), by rank
};

class WindowMatcher {
 public:
  WindowMatcher(const RunContext& shared, size_t first, const Calls& calls, Collectives* result)
      : run_(*shared.run), first_(first), calls_(calls), result_(result) {}

  void Match() {
    for (const CollectiveGroup& group : GroupCollectiveCalls(run_, first_, calls_)) {
      std::vector<JoinedCall> joined;
      MatchBasis basis = MatchBasis::kSequence;
      if (!JoinBySequence(group, &joined)) {
        basis = MatchBasis::kOrder;
        JoinByOrder(group, &joined);
      }
      const std::vector<int32_t> present = PresentMembers(group);
      if (present.size() > 1 && !group.peer_unknown) CountUnpaired(group, joined);
      const bool some_unrecorded = SomeUnrecorded(group, present);
      for (const JoinedCall& call : joined) Emit(group, basis, present, some_unrecorded, call);
    }
    NoteUnpaired();
  }

 private:
  const CollectiveCall& At(size_t r, size_t i) const { return calls_[r][i]; }

  /// False when a call lacks its number, or the numbers join calls that cannot be one collective.
  bool JoinBySequence(const CollectiveGroup& group, std::vector<JoinedCall>* joined) {
    std::unordered_map<uint64_t, size_t> by_number;  // (sequence, how often it was seen on this rank) -> joined
    if (!group.calls.empty()) by_number.reserve(2 * group.calls.front().size());
    for (size_t r = 0; r < group.calls.size(); ++r) {
      std::unordered_map<int64_t, uint64_t> occurrence;
      for (const size_t i : group.calls[r]) {
        const CollectiveCall& call = At(r, i);
        if (!call.sequence) return Refuse(joined);
        const uint64_t key = MixHash(static_cast<uint64_t>(*call.sequence), occurrence[*call.sequence]++);
        const auto [slot, is_new] = by_number.emplace(key, joined->size());
        if (is_new) {
          joined->push_back({*call.sequence, {}});
        } else {
          const auto& [other_r, other_i] = joined->at(slot->second).members.front();
          const CollectiveKind kind = At(other_r, other_i).kind;
          if (kind != CollectiveKind::kOther && call.kind != CollectiveKind::kOther &&
              LooseClass(kind) != LooseClass(call.kind)) {
            Note("sequence_contradiction",
                 fmt::format("group {}: number {} is {} on rank {} and {} on rank {}", group.label, *call.sequence,
                             CollectiveKindName(kind), RankOf(other_r), CollectiveKindName(call.kind), RankOf(r)),
                 "collectives of this group were joined by order instead; check that the traces are of one job");
            return Refuse(joined);
          }
        }
        joined->at(slot->second).members.emplace_back(r, i);
      }
    }
    return true;
  }

  static bool Refuse(std::vector<JoinedCall>* joined) {
    joined->clear();
    return false;
  }

  void JoinByOrder(const CollectiveGroup& group, std::vector<JoinedCall>* joined) {
    const bool use_steps = StepsAreShared(group);
    std::vector<std::vector<SequenceToken>> lists(group.calls.size());
    for (size_t r = 0; r < lists.size(); ++r) {
      lists[r].reserve(group.calls[r].size());
      for (const size_t i : group.calls[r]) lists[r].push_back(TokenOf(At(r, i), use_steps));
    }
    const SequenceAlignment aligned = AlignSequences(lists);
    if (aligned.ambiguous) {
      Note("collective_order_ambiguous",
           fmt::format("group {}: the ranks' windows hold different numbers of equal collectives", group.label),
           "they were joined by the order that is nearest in time; traces with sequence numbers (PyTorch 2.12 and "
           "newer) or "
           "with steps leave no doubt");
    }
    joined->resize(aligned.slot_count);
    for (size_t slot = 0; slot < joined->size(); ++slot) joined->at(slot).sequence = static_cast<int64_t>(slot);
    for (size_t r = 0; r < lists.size(); ++r) {
      for (size_t k = 0; k < lists[r].size(); ++k) {
        joined->at(aligned.slots[r][k]).members.emplace_back(r, group.calls[r][k]);
      }
    }
  }

  /// Step numbers anchor the order if the ranks count the same steps: any two ranks with steps share one.
  bool StepsAreShared(const CollectiveGroup& group) const {
    std::optional<std::unordered_set<int64_t>> first;
    for (size_t r = 0; r < group.calls.size(); ++r) {
      std::unordered_set<int64_t> own;
      for (const size_t i : group.calls[r]) {
        if (At(r, i).step) own.insert(*At(r, i).step);
      }
      if (group.calls[r].empty()) continue;
      if (own.empty()) return false;
      if (!first) {
        first = std::move(own);
      } else if (std::none_of(own.begin(), own.end(), [&](int64_t step) { return first->count(step) != 0; })) {
        return false;
      }
    }
    return first.has_value();
  }

  int32_t RankOf(size_t r) const { return run_.ranks[first_ + r].rank.value; }

  /// Members with a trace in this window: those listed, or, where nothing lists them, those with any call of the group
  /// (all ranks of the window for the default group).
  std::vector<int32_t> PresentMembers(const CollectiveGroup& group) const {
    std::vector<int32_t> present;
    for (size_t r = 0; r < group.calls.size(); ++r) {
      const bool listed = std::binary_search(group.members.begin(), group.members.end(), RankOf(r));
      if (group.members.empty() ? !group.calls[r].empty() : listed) present.push_back(RankOf(r));
    }
    return present;
  }

  /// True if a member has no trace in this window.
  bool SomeUnrecorded(const CollectiveGroup& group, const std::vector<int32_t>& present) const {
    if (group.peer_unknown) return false;
    if (!group.members.empty()) return present.size() < group.members.size();
    return static_cast<size_t>(std::max(group.size.value_or(0), 0)) > calls_.size();
  }

  void Emit(const CollectiveGroup& group, MatchBasis basis, const std::vector<int32_t>& present, bool some_unrecorded,
            const JoinedCall& joined) {
    CollectiveInstance instance;
    instance.window = run_.ranks[first_].window;
    instance.group = group.label;
    instance.sequence = joined.sequence;
    instance.basis = basis;
    instance.group_size = group.size;
    CollectiveKind kind = CollectiveKind::kOther;
    size_t next_present = 0;
    for (const auto& [r, i] : joined.members) {
      const CollectiveCall& call = At(r, i);
      if (kind == CollectiveKind::kOther || kind == CollectiveKind::kSendReceive) kind = call.kind;
      if (!instance.group_size) instance.group_size = call.group_size;
      CollectiveMember member;
      member.rank_index = first_ + r;
      member.arrival_ns = member.trace_start_ns = call.start_ns;
      member.end_ns = member.trace_end_ns = call.start_ns + call.duration_ns;
      member.duration_ns = call.duration_ns;
      member.issue = call.issue;
      member.kind = call.kind;
      instance.members.push_back(member);
      while (next_present < present.size() && present[next_present] < RankOf(r)) {
        instance.missing_ranks.push_back({present[next_present++]});
      }
      if (next_present < present.size() && present[next_present] == RankOf(r)) ++next_present;
    }
    for (; next_present < present.size(); ++next_present) instance.missing_ranks.push_back({present[next_present]});
    // In a group of unknown size, one member is never all of it: a collective of a single rank would say so.
    const size_t expected = instance.group_size ? static_cast<size_t>(std::max(*instance.group_size, 0))
                                                : std::max<size_t>(present.size(), 2);
    instance.some_unrecorded = some_unrecorded && instance.missing_ranks.empty();
    instance.complete = instance.missing_ranks.empty() && instance.members.size() >= expected && !group.peer_unknown;
    // A pair that sends and receives is one thing with two sides.
    const bool is_pair = kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
    instance.name = is_pair && instance.members.size() == 2 ? "send_recv" : CollectiveKindName(kind);
    instance.synchronising = IsSynchronising(kind);
    instance.bytes = Bytes(kind, group, joined);
    if (instance.members.size() > 1 || instance.group_size.value_or(2) > 0)
      result_->instances.push_back(std::move(instance));
  }

  void CountUnpaired(const CollectiveGroup& group, const std::vector<JoinedCall>& joined) {
    call_count_ += joined.size();
    for (const JoinedCall& call : joined) {
      if (call.members.size() > 1) continue;
      if (unpaired_count_++ == 0) first_unpaired_ = {group.label, RankOf(call.members.front().first)};
    }
  }

  void NoteUnpaired() {
    if (unpaired_count_ == 0) return;
    Note("collectives_unpaired",
         fmt::format("{} of {} collectives are in one rank's recording alone; the first is of group {}, on rank {}",
                     unpaired_count_, call_count_, first_unpaired_.first, first_unpaired_.second),
         "what they belong to lies outside the other ranks' recordings or was lost; no wait is told of them",
         model::Severity::kInfo);
  }

  /// The largest of the members' sizes: with uneven splits, the fullest buffer bounds the transfer.
  std::optional<int64_t> Bytes(CollectiveKind kind, const CollectiveGroup& group, const JoinedCall& joined) const {
    std::optional<int64_t> largest;
    for (const auto& [r, i] : joined.members) {
      const CollectiveCall& call = At(r, i);
      CollectiveBuffers buffers;
      buffers.in_elements = call.in_elements;
      buffers.out_elements = call.out_elements;
      buffers.element_bytes = ElementBytes(run_.names[call.dtype]);
      buffers.group_size = group.size ? group.size : call.group_size;
      const std::optional<int64_t> bytes = CollectiveBytes(kind, buffers);
      if (bytes && (!largest || *bytes > *largest)) largest = bytes;
    }
    return largest;
  }

  void Note(std::string code, std::string message, std::string advice,
            model::Severity severity = model::Severity::kWarning) {
    model::LedgerEntry entry;
    entry.code = std::move(code);
    entry.severity = severity;
    entry.message = std::move(message);
    entry.advice = std::move(advice);
    result_->notes.push_back(std::move(entry));
  }

  const model::Run& run_;
  const size_t first_;
  const Calls& calls_;
  Collectives* const result_;
  size_t call_count_ = 0;
  size_t unpaired_count_ = 0;
  std::pair<std::string, int32_t> first_unpaired_;
};

}  // namespace

const char* MatchBasisName(MatchBasis basis) {
  switch (basis) {
    case MatchBasis::kSequence: return "sequence";
    case MatchBasis::kOrder: return "order";
  }
  return "order";
}

Collectives MatchCollectives(const RunContext& shared) {
  Collectives result;
  const std::vector<model::RankTrace>& ranks = shared.run->ranks;
  for (size_t first = 0; first < ranks.size();) {
    std::vector<size_t> of_window;
    for (size_t i = first; i < ranks.size() && ranks[i].window == ranks[first].window; ++i) of_window.push_back(i);
    const Calls calls = FindCollectiveCalls(shared, of_window);
    WindowMatcher(shared, first, calls, &result).Match();
    first += calls.size();
  }
  SortInstances(&result);
  return result;
}

namespace {

// SQL and CSV have a row for each member; see present/report/run_tables.cc.
std::vector<RowColumn<CollectiveInstance>> InstanceColumns() {
  using Row = CollectiveInstance;
  using Member = CollectiveMember;
  const auto members = std::mem_fn(&Row::members);
  return {
      Field<&Row::window>("window", "", "Window it belongs to."),
      Field<&Row::group>("group", "", "Process group: its name, description or members; `default` when unknown."),
      Field<&Row::sequence>("sequence", "",
                            "Sequence number in the group as recorded, else the order of occurrence from 0."),
      NamedField<&Row::basis, MatchBasisName>("match", "How the ranks' parts were joined.", {"sequence", "order"}),
      Field<&Row::name>(
          "name", "",
          "`all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `broadcast`, `reduce`, `send`, `recv`, ..."),
      Field<&Row::bytes>("bytes", "bytes", "Size of the whole buffer, as nccl-tests count it.", "not recorded"),
      Field<&Row::group_size>("group_size", "count",
                              "Members of the group, with or without a trace; the n of `busbw_bytes_per_s`.",
                              "not known"),
      Field<&Row::synchronising>("synchronising", "",
                                 "No member can finish before all have arrived (`all_reduce`, ..., not `broadcast`)."),
      Field<&Row::complete>("complete", "", "Every member of the group is here."),
      ListField<Row>(members, RankField<&Member::rank_index>("ranks", "Ranks that have it, ascending.")),
      ListField<Row>(members,
                     Field<&Member::arrival_ns>("arrival_ns", "ns, aligned clock",
                                                "Start of each rank's kernel; CPU jobs: of the backend's range.")),
      ListField<Row>(members, Field<&Member::end_ns>("end_ns", "ns, aligned clock", "End of it.")),
      ListField<Row>(members,
                     Field<&Member::wait_ns>("wait_ns", "ns",
                                             "Last arrival (of the members that were recorded) less own arrival; where "
                                             "it is not synchronising, no more than the own duration.",
                                             "entry: a member's window lacks the collective, or it was joined wrongly, "
                                             "so the last arrival is not known")),
      ListField<Row>(members, Field<&Member::duration_ns>("duration_ns", "ns",
                                                          "Duration of each rank's kernel or range; needs no clock.")),
      ListField<&Row::missing_ranks>("missing_ranks", "", "Members that have a trace in this window which lacks it."),
      RankField<&Row::last_rank_index>(
          "last_rank", "The rank that arrived last.",
          "the margin is below the clocks' uncertainty, or a member lacks it or came later "
          "without a trace"),
      Field<&Row::transfer_ns>("transfer_ns", "ns",
                               "Time of the collective itself after all members have arrived: synchronising ones, the "
                               "shortest member's duration; others, last end less last arrival.",
                               "not complete"),
      Field<&Row::algbw_bytes_per_s>("algbw_bytes_per_s", "bytes/s",
                                     "`bytes` / `transfer_ns`: waiting is not included.", "size or transfer unknown"),
      Field<&Row::busbw_bytes_per_s>("busbw_bytes_per_s", "bytes/s",
                                     "`algbw_bytes_per_s` times nccl-tests' factor for the operation.",
                                     "size or transfer unknown"),
  };
}

Table InstanceTable() {
  std::vector<RowColumn<CollectiveInstance>> columns = InstanceColumns();
  for (RowColumn<CollectiveInstance>& column : columns) column.place = ColumnPlace::kOnlyInJson;
  return DeclareTable("collectives", "",
                      "One row per collective instance, over all ranks. `ranks`, `arrival_ns`, `end_ns`, `wait_ns` and "
                      "`duration_ns` are parallel",
                      &Collectives::instances, columns, {"", TableOrder::kArrivals});
}

}  // namespace

Pass CollectivesPass() {
  return RunPass<Collectives>(
      {.question = "How long did each collective wait, and how fast did it transfer?", .tables = {InstanceTable()}},
      [](PassContext& context) {
        // Analyze has matched them to align the clocks by.
        Collectives collectives = context.Take<Collectives>();
        TimeCollectives(context.run(), &collectives);
        return collectives;
      });
}

}  // namespace lockstep::analysis
