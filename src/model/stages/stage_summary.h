#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/stages/stage.h"
#include "model/stages/stage_job.h"

namespace lockstep::model {

/// A step of a job, without its stages.
struct SummaryStep {
  int64_t number = 0;
  int64_t ns = 0;
};

/// Steps that follow each other.
struct SummaryWindow {
  int64_t first_step = 0;
  int64_t last_step = 0;
  int64_t step_count = 1;
  int64_t ns = 0;
  StageTimes frontier_ns = {};  ///< By stage; they add up to `ns`.
};

/// What a summary of stages (docs/json.md#lockstepstages1) says of a run, as far as runs are compared by it.
struct StageSummary {
  std::string source = {};  ///< The file.
  StageJob facts = {};
  bool is_partial = false;
  int64_t world_size = 0;
  std::vector<int32_t> ranks = {};          ///< That left steps.
  std::vector<int32_t> running_ranks = {};  ///< Of them, those that did not end in order.
  std::string verdict = {};                 ///< Its sentence.
  std::vector<SummaryStep> steps = {};      ///< Numbers grow.
  std::vector<SummaryWindow> windows = {};  ///< In order, no step in two.
  // The most of any rank; absent: not measured.
  std::optional<int64_t> resident_bytes = {};
  std::optional<int64_t> allocated_bytes = {};
  std::optional<int64_t> reserved_bytes = {};
};

}  // namespace lockstep::model
