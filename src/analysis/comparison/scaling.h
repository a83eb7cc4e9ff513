#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/comparison/run_profile.h"
#include "analysis/comparison/scaling_fit.h"

namespace lockstep::comparison {

struct ScalingOptions {
  Scaling kind = Scaling::kWeak;
  double confidence = 0.95;
  std::optional<double> items_per_step = {};  ///< Of the whole job (strong), or of one rank (weak).
};

/// A run of the series.
struct ScalingInput {
  int32_t ranks = 0;  ///< N: the world size, or what the user says.
  RunProfile profile;
};

/// One point of the curve. Times are medians over the steps of the job's step (its slowest rank's), ns.
struct ScalingPoint {
  std::string label;
  int32_t ranks = 0;
  size_t step_count = 0;
  double step_ns = 0;
  std::optional<double> low_ns = {};  ///< Interval of the median; absent below the steps it needs.
  std::optional<double> high_ns = {};
  double work_ns = 0;              ///< Step less exposed communication (mean over ranks), median.
  double communication_ns = 0;     ///< Exposed communication, mean over ranks, median: waiting included.
  double communication_ratio = 0;  ///< Of the step.
  double speed_up = 1;             ///< Against the smallest run, times its ranks (weak: scaled speed-up).
  double strong_efficiency = 1;    ///< T(n0) n0 / (T(n) n).
  double weak_efficiency = 1;      ///< T(n0) / T(n).
  std::optional<double> items_per_s = {};
  int32_t slowest_rank = 0;  ///< Most often the slowest.
  double slowest_share = 0;  ///< Of the steps.
};

/// Full run against the same job with gradient synchronisation off.
struct DirectOverhead {
  std::string label;
  int32_t ranks = 0;
  double full_ns = 0;
  double no_sync_ns = 0;
  double overhead_ns = 0;  ///< Median of all differences between steps.
  std::optional<double> low_ns = {};
  std::optional<double> high_ns = {};
  double ratio = 0;  ///< overhead / full.
};

struct ScalingCurve {
  ScalingOptions options;
  std::vector<ScalingPoint> points;  ///< By ranks.
  std::vector<DirectOverhead> direct;
  ScalingFit fit;
  std::string sentence;            ///< The verdict.
  std::vector<std::string> notes;  ///< What limits it.
  std::vector<std::pair<std::string, std::vector<model::LedgerEntry>>> ledgers;
  bool partial = false;
  double efficiency(const ScalingPoint& point) const {
    return options.kind == Scaling::kWeak ? point.weak_efficiency : point.strong_efficiency;
  }
};

/// Errors: kFailedPrecondition when fewer than two sizes are there, a run has no step, or a run without
/// synchronisation has no full run of its size; kInvalidArgument when two runs have one size.
Result<ScalingCurve> MeasureScaling(std::vector<ScalingInput> runs, std::vector<ScalingInput> no_sync,
                                    const ScalingOptions& options);

}  // namespace lockstep::comparison
