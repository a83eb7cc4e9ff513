#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/operation_trace.h"

namespace lockstep::analysis {

/// How long one stage had no work in one step.
struct BubbleRow {
  int64_t step = 0;
  int32_t data_rank = 0;
  int32_t stage = 0;
  int64_t window_ns = 0;    ///< The stage's own iteration: Iteration::total_ns, or else the step of its pipeline.
  int64_t busy_ns = 0;      ///< Forward and backward work, as a union.
  double bubble_ratio = 0;  ///< 1 - busy / window.
  std::optional<int64_t> memory_bytes = {};
};

/// A pipeline's bubbles in one step.
struct PipelineStepRow {
  int64_t step = 0;
  int32_t data_rank = 0;
  int32_t stage_count = 0;
  int32_t micro_batch_count = 0;  ///< Forward operations of a stage.
  int64_t iteration_ns = 0;       ///< The longest of its stages' windows.
  double bubble_ratio = 0;        ///< 1 - sum of busy / (stages * iteration).
  double ideal_bubble_ratio = 0;  ///< (p - 1) / (m + p - 1): 1F1B with equal stages and free transfers.
  bool warm_up = false;           ///< The first step, when it takes more than 1.5 times the median of the others.
};

/// Bubbles of the pipelines of an operation trace.
struct Bubbles {
  static constexpr std::string_view kPass = "bubbles";

  std::vector<BubbleRow> stages;       ///< By (step, data rank, stage).
  std::vector<PipelineStepRow> steps;  ///< By (step, data rank).
};

/// Empty for a trace without forward and backward work, or of one stage. Cost: O(n log n).
/// Source: docs/metrics.md#pipeline-bubbles.
Bubbles ComputeBubbles(const model::OperationTrace& trace);

}  // namespace lockstep::analysis
