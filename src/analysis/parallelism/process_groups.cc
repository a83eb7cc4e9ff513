#include "analysis/parallelism/process_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/parallelism/group_use.h"
#include "analysis/pass.h"
#include "analysis/table.h"

namespace lockstep::analysis {
namespace {

using ProcessGroupKey = std::tuple<int32_t, std::string, std::vector<int32_t>>;  // window, name, members as listed

std::string NameOf(const TrafficGroup& group) {
  if (!group.name.empty()) return group.name;
  return group.communicator_id ? fmt::format("communicator {:#x}", *group.communicator_id) : "default";
}

ProcessGroupKey KeyOf(const model::Run& run, const RankTraffic& traffic, const TrafficGroup& group) {
  return {run.ranks[traffic.rank_index].window, NameOf(group), group.members};
}

/// A group while its ranks are added.
struct GroupSums {
  ProcessGroupRow row;
  GroupUse use;
  std::map<CollectiveKind, GroupOperationRow> operations;
  std::map<int64_t, uint64_t> all_reduce_sizes;
  int64_t span_ns = 0;
  bool lists_members = false;
};

void AddSize(std::optional<int64_t> bytes, std::optional<int64_t>* sum) {
  int64_t total = 0;
  if (bytes && !__builtin_add_overflow(sum->value_or(0), *bytes, &total)) *sum = total;
}

/// How far apart two members are in the order of the group; 0 when one of them is none.
size_t Distance(const std::vector<int32_t>& members, int32_t a, int32_t b) {
  const auto at_a = std::lower_bound(members.begin(), members.end(), a);
  const auto at_b = std::lower_bound(members.begin(), members.end(), b);
  if (at_a == members.end() || *at_a != a || at_b == members.end() || *at_b != b) return 0;
  return static_cast<size_t>(std::abs(at_a - at_b));
}

void AddUse(const TrafficCall& call, int32_t rank, GroupSums* group) {
  GroupUse& use = group->use;
  ++use.calls;
  switch (call.kind) {
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive:
    case CollectiveKind::kSendReceive:
      ++use.point_to_point;
      if (call.peer) {
        use.peers_known = true;
        if (Distance(group->row.members, rank, *call.peer) > 1) ++use.far_sends;
      }
      break;
    case CollectiveKind::kAllToAll: ++use.all_to_all; break;
    case CollectiveKind::kAllGather: ++use.all_gather; break;
    case CollectiveKind::kReduceScatter:
      ++(call.in_backward() ? use.reduce_scatter_backward : use.reduce_scatter_forward);
      break;
    case CollectiveKind::kAllReduce: {
      ++(call.in_backward() ? use.all_reduce_backward : use.all_reduce_forward);
      int64_t& bytes = call.in_backward() ? use.all_reduce_backward_bytes : use.all_reduce_forward_bytes;
      if (__builtin_add_overflow(bytes, call.bytes.value_or(0), &bytes)) bytes = INT64_MAX / 8;
      use.most_frequent_all_reduce =
          std::max(use.most_frequent_all_reduce, ++group->all_reduce_sizes[call.bytes.value_or(-1)]);
      break;
    }
    default: break;
  }
}

void AddCall(const TrafficCall& call, GroupSums* group) {
  GroupOperationRow& operation = group->operations[call.kind];
  operation.kind = call.kind;
  ++operation.call_count;
  if (call.in_backward()) ++operation.backward_count;
  operation.duration_ns += call.duration_ns;
  operation.exposed_ns += call.exposed_ns;
  AddSize(call.bytes, &operation.bytes);
  AddSize(call.bytes, &group->row.bytes);
  ++group->row.call_count;
}

int32_t WorldSize(const model::Run& run) {
  int32_t size = 0;
  std::set<int32_t> ranks;
  for (const model::RankTrace& rank : run.ranks) {
    size = std::max(size, rank.world_size.value_or(0));
    ranks.insert(rank.rank.value);
  }
  return std::max(size, static_cast<int32_t>(ranks.size()));
}

void AddRank(const model::Run& run, const RankTraffic& traffic, std::map<ProcessGroupKey, GroupSums>* groups) {
  const model::RankTrace& trace = run.ranks[traffic.rank_index];
  std::vector<GroupSums*> of_group;
  std::set<GroupSums*> seen;
  for (const TrafficGroup& group : traffic.groups) {
    GroupSums& sums = (*groups)[KeyOf(run, traffic, group)];
    ProcessGroupRow& row = sums.row;
    row.window = trace.window;
    row.name = NameOf(group);
    if (row.description.empty()) row.description = group.description;
    if (row.backend.empty()) row.backend = group.backend;
    if (!row.size) row.size = group.size;
    if (!group.members.empty()) {
      row.members = group.members;
      sums.lists_members = true;
    }
    if (seen.insert(&sums).second) {
      row.rank_indices.push_back(traffic.rank_index);
      if (!sums.lists_members) row.members.push_back(trace.rank.value);
      sums.span_ns += traffic.span_ns;
      sums.use.rank_steps += traffic.steps.size();
    }
    row.communication_ns += group.communication_ns;
    row.exposed_ns += group.exposed_ns;
    of_group.push_back(&sums);
  }
  for (const TrafficCall& call : traffic.calls) {
    AddUse(call, trace.rank.value, of_group[call.group]);
    AddCall(call, of_group[call.group]);
  }
}

void Finish(int32_t world_size, GroupSums* group) {
  ProcessGroupRow& row = group->row;
  std::sort(row.members.begin(), row.members.end());
  row.is_world = world_size > 1 && row.size == world_size;
  const GroupPlace place{row.members, row.is_world};
  GroupVerdict verdict = ClassifyGroup(row.name, row.description, group->use, place);
  row.kind = verdict.kind;
  row.basis = verdict.basis;
  row.confidence = verdict.confidence;
  row.evidence = std::move(verdict.evidence);
  if (group->use.rank_steps > 0) {
    row.calls_per_step = static_cast<double>(row.call_count) / static_cast<double>(group->use.rank_steps);
  }
  if (group->span_ns > 0) {
    row.communication_ratio = static_cast<double>(row.communication_ns) / static_cast<double>(group->span_ns);
    row.exposed_ratio = static_cast<double>(row.exposed_ns) / static_cast<double>(group->span_ns);
  }
}

/// Unexplained groups that lie alike: neighbouring ranks, or every n-th.
struct Layer {
  std::vector<ProcessGroupRow*> rows;
  uint64_t calls = 0;
  uint64_t ranks = 0;

  uint64_t CallsPerRank() const { return ranks == 0 ? 0 : calls / ranks; }
  void Add(ProcessGroupRow* row) {
    rows.push_back(row);
    calls += row->call_count;
    ranks += row->rank_indices.size();
  }
  void Name(GroupKind kind, const std::string& evidence) {
    for (ProcessGroupRow* row : rows) {
      row->kind = kind;
      row->basis = GroupBasis::kMembership;
      row->confidence = Confidence::kLow;
      row->evidence = evidence;
    }
  }
};

/// Groups that neither name nor use explains, of a job that has both neighbouring ranks and strides of one extent: the
/// inner ones talk most, as tensor parallelism does, and the outer ones are the replicas.
void ClassifyByPlace(std::vector<ProcessGroupRow>* rows) {
  std::map<std::pair<int32_t, int32_t>, std::pair<Layer, Layer>> by_extent;  // (window, extent): inner, outer
  for (ProcessGroupRow& row : *rows) {
    if (row.kind != GroupKind::kUnknown) continue;
    const auto stride = GroupPlace{row.members, row.is_world}.stride();
    if (!stride) continue;
    if (*stride == 1) by_extent[{row.window, static_cast<int32_t>(row.members.size())}].first.Add(&row);
    if (*stride > 1) by_extent[{row.window, *stride}].second.Add(&row);
  }
  for (auto& [key, layers] : by_extent) {
    auto& [inner, outer] = layers;
    if (outer.rows.empty() || inner.CallsPerRank() <= outer.CallsPerRank()) continue;
    inner.Name(GroupKind::kTensor,
               fmt::format("{} neighbouring ranks, {} calls a rank; groups of every {}th rank have {}", key.second,
                           inner.CallsPerRank(), key.second, outer.CallsPerRank()));
    outer.Name(GroupKind::kData, fmt::format("every {}th rank, {} calls a rank; groups of neighbouring ranks have {}",
                                             key.second, outer.CallsPerRank(), inner.CallsPerRank()));
  }
}

}  // namespace

ProcessGroups FinishGroups(const model::Run& run, const std::vector<RankTraffic>& by_rank_index) {
  std::map<ProcessGroupKey, GroupSums> by_key;
  bool has_backward = false;
  bool has_operators = false;
  for (const RankTraffic& traffic : by_rank_index) {
    has_backward = has_backward || !traffic.phases.empty();
    has_operators = has_operators || traffic.has_cpu_operators;
    AddRank(run, traffic, &by_key);
  }
  const int32_t world_size = WorldSize(run);
  std::vector<GroupSums> groups;
  for (auto& [key, group] : by_key) {
    group.use.has_backward = has_backward;
    group.use.has_cpu_operators = has_operators;
    Finish(world_size, &group);
    groups.push_back(std::move(group));
  }
  std::stable_sort(groups.begin(), groups.end(), [](const GroupSums& a, const GroupSums& b) {
    const auto key = [](const ProcessGroupRow& row) {
      return std::tuple(row.window, -static_cast<int64_t>(row.members.size()),
                        row.members.empty() ? -1 : row.members.front(), std::string_view(row.name));
    };
    return key(a.row) < key(b.row);
  });
  ProcessGroups result;
  for (GroupSums& group : groups) {
    group.row.number = static_cast<uint32_t>(result.rows.size());
    const auto first = static_cast<std::ptrdiff_t>(result.operations.size());
    for (auto& [kind, operation] : group.operations) {
      operation.group = group.row.number;
      result.operations.push_back(operation);
    }
    std::stable_sort(result.operations.begin() + first, result.operations.end(),
                     [](const auto& a, const auto& b) { return a.duration_ns > b.duration_ns; });
    result.rows.push_back(std::move(group.row));
  }
  ClassifyByPlace(&result.rows);
  return result;
}

std::vector<std::vector<size_t>> RowsOfTraffic(const model::Run& run, const std::vector<RankTraffic>& by_rank_index,
                                               const std::vector<ProcessGroupRow>& rows) {
  std::map<ProcessGroupKey, size_t> index;
  for (size_t r = 0; r < rows.size(); ++r) {
    index.emplace(ProcessGroupKey{rows[r].window, rows[r].name, rows[r].members}, r);
    index.emplace(ProcessGroupKey{rows[r].window, rows[r].name, {}}, r);  // for groups whose members no file lists
  }
  std::vector<std::vector<size_t>> found(by_rank_index.size());
  for (size_t i = 0; i < by_rank_index.size(); ++i) {
    for (const TrafficGroup& group : by_rank_index[i].groups) {
      const auto row = index.find(KeyOf(run, by_rank_index[i], group));
      found[i].push_back(row == index.end() ? SIZE_MAX : row->second);
    }
  }
  return found;
}

namespace {

std::vector<RowColumn<ProcessGroupRow>> GroupColumns() {
  using Row = ProcessGroupRow;
  return {
      Field<&Row::number>("group_number", "", "Number of the group in this table, from 0."),
      Field<&Row::window>("window", "", "Window it belongs to."),
      Field<&Row::name>("name", "",
                        "Name as recorded; `default` without metadata, `communicator 0x...` where only that is known."),
      Field<&Row::description>("description", "", "Description as recorded.", "not recorded"),
      Field<&Row::backend>("backend", "", "Backend as recorded.", "not recorded"),
      NamedField<&Row::kind, GroupKindName>("kind",
                                            "What it is for: `data`, `tensor`, `pipeline`, `expert`, `context`, "
                                            "`embedding`, `mixed`, `world`, `unknown`."),
      NamedField<&Row::basis, GroupBasisName>(
          "basis", "What that was taken from: `description`, `name`, `membership`, `traffic`, `none`."),
      NamedField<&Row::confidence, ConfidenceName>("confidence", "How sure that is: `high`, `medium`, `low`, `none`."),
      Field<&Row::evidence>("evidence", "", "Why this kind, or why none."),
      Field<&Row::size>("size", "count", "Members, with or without a trace.", "not known"),
      Field<&Row::is_world>("is_world", "", "All ranks of the job."),
      ListField<&Row::members>("ranks", "",
                               "Global ranks of the members; those with calls where no file lists the members."),
      {"trace_count", ColumnType::kInteger, "count", "Members whose trace has its calls: what the sums are over.", "",
       [](const TableSource&, const Row& row) { return Cell(uint64_t{row.rank_indices.size()}); }},
      Field<&Row::call_count>("call_count", "count", "Calls of all operations, all ranks."),
      Field<&Row::calls_per_step>("calls_per_step", "count", "Calls per rank and step.", "no steps"),
      Field<&Row::bytes>("bytes", "bytes", "Sum of the calls' sizes, all ranks.", "no call has one"),
      Field<&Row::communication_ns>("communication_ns", "ns",
                                    "Sum over ranks of the union of its calls; waiting is in it."),
      Field<&Row::exposed_ns>("exposed_ns", "ns", "Part of that in which the rank computes nothing."),
      Field<&Row::communication_ratio>("communication_ratio", "0..1", "`communication_ns` of the ranks' spans.",
                                       "spans are 0"),
      Field<&Row::exposed_ratio>("exposed_ratio", "0..1", "`exposed_ns` of the ranks' spans.", "spans are 0"),
  };
}

std::vector<RowColumn<GroupOperationRow>> OperationColumns() {
  using Row = GroupOperationRow;
  return {
      GroupColumn<Row>(),
      NamedField<&Row::kind, CollectiveKindName>(
          "name", "`all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `broadcast`, `send`, ..."),
      Field<&Row::call_count>("call_count", "count", "Calls, all ranks."),
      Field<&Row::backward_count>("backward_count", "count", "Calls issued during a backward pass."),
      Field<&Row::bytes>("bytes", "bytes", "Sum of the calls' sizes.", "no call has one"),
      Field<&Row::duration_ns>("duration_ns", "ns", "Sum of the calls' durations; waiting is in it."),
      Field<&Row::exposed_ns>("exposed_ns", "ns", "Sum of their parts in which the rank computes nothing."),
  };
}

}  // namespace

Pass ProcessGroupsPass() {
  return RunPass<ProcessGroups>(
      {.question = "What is each process group for, and what does it cost?",
       .needs = {"traffic"},
       .tables = {DeclareTable("groups", "process_groups", "A process group with traffic, and what it is for",
                               &ProcessGroups::rows, GroupColumns()),
                  DeclareTable("group_operations", "group_operations",
                               "Calls of one operation in a process group, all ranks together",
                               &ProcessGroups::operations, OperationColumns())}},
      [](PassContext& context) { return FinishGroups(context.run(), context.Get<Traffic>().ranks); });
}

}  // namespace lockstep::analysis
