#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison/compare.h"
#include "base/result.h"
#include "model/stages/stage.h"
#include "model/stages/stage_summary.h"

namespace lockstep::stage_comparison {

struct Options {
  comparison::CompareOptions compare = {};
  /// Steps to leave out at the start of each run; absent: a tenth of its steps, kLeastWarmUp at least.
  std::optional<int64_t> skip_steps = {};
  std::optional<int64_t> first_step = {};  ///< Only windows from this step on; nothing is left out as warm-up then.
  std::optional<int64_t> last_step = {};
};
constexpr int64_t kLeastWarmUp = 5;

/// What is compared of a run: a value a window of steps, ns a step.
struct Side {
  model::StageSummary summary;
  int64_t warm_up_steps = 0;  ///< That were left out: those of the windows in which the steps to skip lie.
  int64_t step_count = 0;     ///< That were looked at.
  double mean_step_ns = 0;
  double median_step_ns = 0;
  comparison::Series step_ns;
  std::array<comparison::Series, model::kStages.size()> stage_ns;  ///< Increments of the frontier; they add up.
};

struct StageComparison {
  Options options;
  Side a;
  Side b;
  comparison::Delta step;
  std::array<comparison::Delta, model::kStages.size()> stages;  ///< By model::Stage.
  comparison::Verdict verdict;
};

/// Two runs can be compared that ran to their end on all ranks, on equally many, with workloads that are declared
/// alike. Errors: kFailedPrecondition says of each reason against it what it is.
Status CheckComparable(const model::StageSummary& a, const model::StageSummary& b);

/// Pure. The job's step and each of its stages, window by window: medians, the shift and what of it is noise, as of the
/// steps of two traces (docs/metrics.md#compare).
StageComparison Compare(model::StageSummary a, model::StageSummary b, const Options& options);

enum class GateResult : uint8_t { kPassed, kFailed, kUndecided };
const char* GateResultName(GateResult result);  ///< "passed", "failed", "undecided".

/// Whether B may be slower than A by less than a share of A's step.
struct Gate {
  double allowed_ratio = 0;
  GateResult result = GateResult::kUndecided;
  std::string sentence;
};

/// Fails where B is slower beyond the noise, by `allowed_ratio` or more. Passes where the whole interval lies below
/// that, or below what counts as a difference at all where that is more. Else the runs are too short or noisy to tell.
Gate Decide(const StageComparison& comparison, double allowed_ratio);

}  // namespace lockstep::stage_comparison
