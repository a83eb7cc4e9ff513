#include "analysis/parallelism/pipeline.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/pass.h"
#include "analysis/table.h"

namespace lockstep::analysis {
namespace {

/// A micro-batch leaves a stage forward (+1), or its gradient comes back (-1).
struct Turn {
  int64_t time_ns = 0;
  int change = 0;
};

struct RankSums {
  PipelineRow row;
  std::vector<Turn> turns;
  bool peers_known = true;
  bool wraps = false;
};

std::optional<uint32_t> StageOf(const ProcessGroupRow& group, int32_t rank) {
  const auto at = std::lower_bound(group.members.begin(), group.members.end(), rank);
  if (at == group.members.end() || *at != rank) return std::nullopt;
  return static_cast<uint32_t>(at - group.members.begin());
}

void AddCall(const TrafficCall& call, const ProcessGroupRow& group, RankSums* sums) {
  PipelineRow& row = sums->row;
  const bool sends = call.kind == CollectiveKind::kSend;
  ++(sends ? row.send_count : row.receive_count);
  int64_t bytes = 0;
  if (call.bytes && !__builtin_add_overflow(row.bytes.value_or(0), *call.bytes, &bytes)) row.bytes = bytes;
  const auto peer = call.peer ? StageOf(group, *call.peer) : std::nullopt;
  if (!peer) {
    sums->peers_known = false;
    return;
  }
  const bool up = *peer > row.stage;
  if (row.stage_count > 2 && (up ? *peer - row.stage : row.stage - *peer) == row.stage_count - 1) sums->wraps = true;
  // All stages but the last: forward is what they send up, backward what comes from there. The last: the other way.
  const bool last = row.stage + 1 == row.stage_count;
  if (up == last) return;
  const bool forward = last ? !sends : sends;
  sums->turns.push_back({sends ? call.start_ns : call.end_ns(), forward ? 1 : -1});
}

/// Micro-batches and how many of them are under way at once.
void CountMicrobatches(uint64_t step_count, RankSums* sums) {
  if (!sums->peers_known || sums->turns.empty()) return;
  std::stable_sort(sums->turns.begin(), sums->turns.end(), [](const Turn& a, const Turn& b) {
    return std::tuple(a.time_ns, a.change) < std::tuple(b.time_ns, b.change);
  });
  int64_t in_flight = 0;
  int64_t most = 0;
  uint64_t forwards = 0;
  for (const Turn& turn : sums->turns) {
    in_flight = std::max<int64_t>(in_flight + turn.change, 0);  // the window may begin in the middle of a step
    most = std::max(most, in_flight);
    if (turn.change > 0) ++forwards;
  }
  sums->row.in_flight_count = static_cast<uint64_t>(most);
  sums->row.microbatches_per_step =
      static_cast<double>(forwards) / static_cast<double>(std::max<uint64_t>(step_count, 1));
}

PipelineSchedule ScheduleOf(const std::vector<RankSums>& stages) {
  bool all_wait_their_turn = true;
  bool all_run_ahead = true;
  bool can_tell = false;
  for (const RankSums& sums : stages) {
    if (sums.wraps) return PipelineSchedule::kInterleaved;
    if (!sums.row.in_flight_count || !sums.row.microbatches_per_step) return PipelineSchedule::kUnknown;
    const auto batches = static_cast<uint64_t>(*sums.row.microbatches_per_step + 0.5);
    const uint64_t from_here = sums.row.stage_count - sums.row.stage;
    can_tell = can_tell || batches > from_here;
    all_wait_their_turn = all_wait_their_turn && *sums.row.in_flight_count <= std::min(batches, from_here);
    all_run_ahead = all_run_ahead && *sums.row.in_flight_count == batches;
  }
  if (!can_tell) return PipelineSchedule::kUnknown;
  if (all_wait_their_turn) return PipelineSchedule::kOneForwardOneBackward;
  return all_run_ahead ? PipelineSchedule::kGpipe : PipelineSchedule::kUnknown;
}

}  // namespace

const char* PipelineScheduleName(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::kGpipe: return "gpipe";
    case PipelineSchedule::kOneForwardOneBackward: return "1f1b";
    case PipelineSchedule::kInterleaved: return "interleaved";
    case PipelineSchedule::kUnknown: return "unknown";
  }
  return "unknown";
}

std::vector<PipelineRow> FinishPipeline(const model::Run& run, const std::vector<RankTraffic>& by_rank_index,
                                        const std::vector<ProcessGroupRow>& groups) {
  const auto group_rows = RowsOfTraffic(run, by_rank_index, groups);
  std::map<uint32_t, std::vector<RankSums>> by_group;
  for (size_t i = 0; i < by_rank_index.size(); ++i) {
    const RankTraffic& traffic = by_rank_index[i];
    std::map<size_t, RankSums> of_rank;  // by row of `groups`
    for (const TrafficCall& call : traffic.calls) {
      const size_t r = group_rows[i][call.group];
      if (r == SIZE_MAX || groups[r].kind != GroupKind::kPipeline) continue;
      if (call.kind != CollectiveKind::kSend && call.kind != CollectiveKind::kReceive) continue;
      const auto [slot, is_new] = of_rank.try_emplace(r);
      RankSums& sums = slot->second;
      if (is_new) {
        sums.row.rank_index = traffic.rank_index;
        sums.row.group = groups[r].number;
        sums.row.stage = StageOf(groups[r], run.ranks[traffic.rank_index].rank.value).value_or(0);
        sums.row.stage_count = static_cast<uint32_t>(groups[r].members.size());
      }
      AddCall(call, groups[r], &sums);
    }
    for (auto& [r, sums] : of_rank) {
      for (size_t g = 0; g < traffic.groups.size(); ++g) {
        if (group_rows[i][g] != r) continue;
        sums.row.communication_ns += traffic.groups[g].communication_ns;
        sums.row.bubble_ns += traffic.groups[g].exposed_ns;
      }
      if (traffic.span_ns > 0) {
        sums.row.bubble_ratio = static_cast<double>(sums.row.bubble_ns) / static_cast<double>(traffic.span_ns);
      }
      CountMicrobatches(traffic.steps.size(), &sums);
      by_group[sums.row.group].push_back(std::move(sums));
    }
  }
  std::vector<PipelineRow> rows;
  for (auto& [group, stages] : by_group) {
    std::stable_sort(stages.begin(), stages.end(),
                     [](const RankSums& a, const RankSums& b) { return a.row.stage < b.row.stage; });
    const PipelineSchedule schedule = ScheduleOf(stages);
    for (RankSums& sums : stages) {
      sums.row.schedule = schedule;
      rows.push_back(sums.row);
    }
  }
  return rows;
}

namespace {

std::vector<RowColumn<PipelineRow>> StageColumns() {
  using Row = PipelineRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      GroupColumn<Row>(),
      Field<&Row::stage>("stage", "", "Place among the group's ranks, from 0."),
      Field<&Row::stage_count>("stage_count", "count", "Ranks of the group."),
      Field<&Row::send_count>("send_count", "count", "Sends."),
      Field<&Row::receive_count>("receive_count", "count", "Receives."),
      Field<&Row::bytes>("bytes", "bytes", "Sum of their sizes.", "not recorded"),
      Field<&Row::microbatches_per_step>("microbatches_per_step", "count",
                                         "Forward passes of this stage per step; of the trace without steps.",
                                         "peers not recorded"),
      Field<&Row::in_flight_count>(
          "in_flight_count", "count",
          "Most micro-batches at once whose forward pass is done and whose backward pass is not.",
          "peers not recorded"),
      NamedField<&Row::schedule, PipelineScheduleName>("schedule",
                                                       "Of the group: `gpipe`, `1f1b`, `interleaved`, `unknown`."),
      Field<&Row::communication_ns>("communication_ns", "ns", "Union of its sends and receives."),
      Field<&Row::bubble_ns>("bubble_ns", "ns", "Part of that in which nothing is computed."),
      Field<&Row::bubble_ratio>("bubble_ratio", "0..1", "`bubble_ns` of the rank's span.", "the span is 0"),
  };
}

}  // namespace

Pass PipelinePass() {
  return RunPass<Pipelines>({.question = "How long do pipeline stages wait for each other?",
                             .needs = {"traffic", "groups"},
                             .tables = {DeclareTable("pipeline", "pipeline", "A rank's stage of a pipeline group",
                                                     &Pipelines::rows, StageColumns())}},
                            [](PassContext& context) {
                              return Pipelines{FinishPipeline(context.run(), context.Get<Traffic>().ranks,
                                                              context.Get<ProcessGroups>().rows)};
                            });
}

}  // namespace lockstep::analysis
