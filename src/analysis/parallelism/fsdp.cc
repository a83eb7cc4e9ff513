#include "analysis/parallelism/fsdp.h"

#include <map>

#include "analysis/pass.h"
#include "analysis/table.h"

namespace lockstep::analysis {
namespace {

bool MayBeSharded(const ProcessGroupRow& group) {
  return group.kind == GroupKind::kData || (group.kind == GroupKind::kWorld && group.is_world);
}

void AddBytes(std::optional<int64_t> bytes, std::optional<int64_t>* sum) {
  int64_t total = 0;
  if (bytes && !__builtin_add_overflow(sum->value_or(0), *bytes, &total)) *sum = total;
}

void AddCall(const TrafficCall& call, FsdpRow* row) {
  if (call.kind == CollectiveKind::kAllGather) {
    ++row->gather_count;
    if (call.in_backward()) ++row->gather_backward_count;
    row->gather_ns += call.duration_ns;
    row->gather_exposed_ns += call.exposed_ns;
    if (call.duration_ns > 0 && 2 * call.exposed_ns <= call.duration_ns) ++row->prefetched_count;
    AddBytes(call.bytes, &row->gather_bytes);
  } else {
    ++row->scatter_count;
    row->scatter_ns += call.duration_ns;
    row->scatter_exposed_ns += call.exposed_ns;
    AddBytes(call.bytes, &row->scatter_bytes);
  }
}

Resharding ReshardingOf(const FsdpRow& row, bool has_phases) {
  if (!has_phases || row.gather_count == 0) return Resharding::kUnknown;
  const uint64_t forward = row.gather_count - row.gather_backward_count;
  // A unit or two is kept on purpose (the last one is needed at once), so that the counts need not be equal.
  return forward > 0 && 2 * row.gather_backward_count >= forward ? Resharding::kAfterForward : Resharding::kKept;
}

}  // namespace

const char* ReshardingName(Resharding resharding) {
  switch (resharding) {
    case Resharding::kAfterForward: return "after_forward";
    case Resharding::kKept: return "kept";
    case Resharding::kUnknown: return "unknown";
  }
  return "unknown";
}

std::vector<FsdpRow> FinishFsdp(const model::Run& run, const std::vector<RankTraffic>& by_rank_index,
                                const std::vector<ProcessGroupRow>& groups) {
  const auto group_rows = RowsOfTraffic(run, by_rank_index, groups);
  std::vector<FsdpRow> rows;
  for (size_t i = 0; i < by_rank_index.size(); ++i) {
    const RankTraffic& traffic = by_rank_index[i];
    std::map<uint32_t, FsdpRow> by_group;
    for (const TrafficCall& call : traffic.calls) {
      const size_t r = group_rows[i][call.group];
      if (r == SIZE_MAX || !MayBeSharded(groups[r])) continue;
      if (call.kind != CollectiveKind::kAllGather && call.kind != CollectiveKind::kReduceScatter) continue;
      FsdpRow& row = by_group[groups[r].number];
      row.rank_index = traffic.rank_index;
      row.group = groups[r].number;
      AddCall(call, &row);
    }
    for (auto& [group, row] : by_group) {
      if (row.gather_count == 0 || row.scatter_count == 0) continue;
      row.step_count = traffic.steps.size();
      row.resharding = ReshardingOf(row, !traffic.phases.empty());
      row.peak_allocated_bytes = traffic.peak_allocated_bytes;
      row.peak_reserved_bytes = traffic.peak_reserved_bytes;
      rows.push_back(row);
    }
  }
  return rows;
}

namespace {

std::vector<RowColumn<FsdpRow>> FsdpColumns() {
  using Row = FsdpRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      GroupColumn<Row>(),
      Field<&Row::step_count>("step_count", "count", "Steps that the figures are sums of; 0 without steps."),
      Field<&Row::gather_count>("gather_count", "count", "all_gathers."),
      Field<&Row::gather_backward_count>("gather_backward_count", "count", "Those issued in a backward pass."),
      Field<&Row::gather_bytes>("gather_bytes", "bytes", "Sum of their sizes.", "not recorded"),
      Field<&Row::gather_ns>("gather_ns", "ns", "Sum of their durations; waiting is in it."),
      Field<&Row::gather_exposed_ns>("gather_exposed_ns", "ns", "Part of that in which the rank computes nothing."),
      Field<&Row::prefetched_count>("prefetched_count", "count",
                                    "Gathers with computation beside at least half of them."),
      Field<&Row::scatter_count>("scatter_count", "count", "reduce_scatters."),
      Field<&Row::scatter_bytes>("scatter_bytes", "bytes", "Sum of their sizes.", "not recorded"),
      Field<&Row::scatter_ns>("scatter_ns", "ns", "Sum of their durations; waiting is in it."),
      Field<&Row::scatter_exposed_ns>("scatter_exposed_ns", "ns", "Part of that in which the rank computes nothing."),
      NamedField<&Row::resharding, ReshardingName>("resharding",
                                                   "`after_forward`: weights are gathered in both passes; `kept`: "
                                                   "once; `unknown`: the passes are not told apart."),
      Field<&Row::peak_allocated_bytes>("peak_allocated_bytes", "bytes",
                                        "Most that the device's allocator had given out.", "no memory events"),
      Field<&Row::peak_reserved_bytes>("peak_reserved_bytes", "bytes", "Most that it had taken from the device.",
                                       "no memory events"),
  };
}

}  // namespace

Pass FsdpPass() {
  return RunPass<Fsdp>(
      {.question = "Are sharded weights gathered before they are needed?",
       .needs = {"traffic", "groups"},
       .tables = {DeclareTable("fsdp", "fsdp", "Sharded weights and gradients of a data group on one rank", &Fsdp::rows,
                               FsdpColumns())}},
      [](PassContext& context) {
        return Fsdp{FinishFsdp(context.run(), context.Get<Traffic>().ranks, context.Get<ProcessGroups>().rows)};
      });
}

}  // namespace lockstep::analysis
