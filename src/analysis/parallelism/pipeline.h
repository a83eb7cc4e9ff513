#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/parallelism/process_groups.h"
#include "analysis/parallelism/rank_traffic.h"

namespace lockstep::analysis {

/// In which order a pipeline's stages compute their micro-batches.
enum class PipelineSchedule : uint8_t {
  kGpipe,                  ///< All forward passes of a step, then all backward passes.
  kOneForwardOneBackward,  ///< A stage has no more micro-batches under way than there are stages from it on.
  kInterleaved,            ///< Stages of several parts each: sends go from the last rank to the first.
  kUnknown,                ///< Peers are not recorded, or there are too few micro-batches to tell.
};
const char* PipelineScheduleName(PipelineSchedule schedule);  ///< "gpipe", "1f1b", "interleaved", "unknown".

/// A rank in a pipeline group. Source: docs/metrics.md#pipeline.
struct PipelineRow {
  size_t rank_index = 0;
  uint32_t group = 0;  ///< ProcessGroupRow::number.
  uint32_t stage = 0;  ///< Place among the group's ranks, from 0.
  uint32_t stage_count = 0;
  uint64_t send_count = 0;
  uint64_t receive_count = 0;
  std::optional<int64_t> bytes = {};  ///< Sent and received.
  std::optional<double> microbatches_per_step =
      {};                                        ///< Absent when peers are not recorded; of the trace without steps.
  std::optional<uint64_t> in_flight_count = {};  ///< Most micro-batches whose forward pass is done and backward not.
  PipelineSchedule schedule = PipelineSchedule::kUnknown;  ///< Of the group.
  int64_t communication_ns = 0;                            ///< |union of sends and receives|
  int64_t bubble_ns = 0;                                   ///< Its part in which nothing is computed.
  std::optional<double> bubble_ratio = {};                 ///< Of the rank's span.
};

struct Pipelines {
  static constexpr std::string_view kPass = "pipeline";

  std::vector<PipelineRow> rows;  ///< By (group, stage).
};

/// Reads no events. Ranks in groups of kind pipeline that send or receive. By (group, stage). Cost: O(calls).
std::vector<PipelineRow> FinishPipeline(const model::Run& run, const std::vector<RankTraffic>& by_rank_index,
                                        const std::vector<ProcessGroupRow>& groups);

}  // namespace lockstep::analysis
