#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/stages/stages_beside.h"
#include "model/stages/stage.h"

namespace lockstep::analysis {

/// What the traces' own analysis says of the same job.
struct TraceAnswer {
  std::optional<int32_t> rank = {};                      ///< That holds the others up; null: none is named.
  std::optional<model::Stage> stage = {};                ///< What it is late in, where its name tells.
  std::string cause = {};                                ///< That name.
  std::optional<int64_t> step_ns = {};                   ///< Median of its steps; null: it marks none.
  std::optional<int64_t> exposed_communication_ns = {};  ///< Likewise, mean of ranks.
  std::optional<int64_t> input_ns = {};                  ///< In the data loader, a step, mean of ranks.
  bool has_device = false;
  size_t rank_count = 0;  ///< That have a trace.
};

/// Pure. No rows without stages, or with no trace beside them.
std::vector<StageAgreementRow> CompareWithTrace(const StagesBeside& stages, const TraceAnswer& trace);

/// The stage that a name stands for which a trace gives what a rank was late in: model::StageOf, and PyTorch's own
/// names, such as "Optimizer.step#SGD.step" and "MulBackward0". Null where it does not tell.
std::optional<model::Stage> StageOfName(std::string_view name);

}  // namespace lockstep::analysis
