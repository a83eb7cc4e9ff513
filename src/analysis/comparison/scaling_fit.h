#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::comparison {

enum class Scaling : uint8_t {
  kWeak,    ///< Each rank's work stays: ideal is a constant step.
  kStrong,  ///< The job's work stays: ideal is a step that falls with 1/n.
};
const char* ScalingName(Scaling kind);  ///< "weak", "strong".

/// How the cost of communication grows with n; 0 for one rank.
enum class Growth : uint8_t {
  kRing,       ///< 2 (n - 1) / n: bandwidth of a ring.
  kLogarithm,  ///< log2 n: depth of a tree.
  kLinear,     ///< n - 1: latency of a ring, or stragglers that add up.
};
const char* GrowthName(Growth growth);  ///< "2(n-1)/n", "log2(n)", "n-1".
double GrowthAt(Growth growth, double ranks);

/// What the fit is made from: a run's step, split as measured.
struct FitPoint {
  double ranks = 1;
  double work_ns = 0;           ///< Step less exposed communication.
  double communication_ns = 0;  ///< Exposed communication.
  double work_error_ns = 0;     ///< Standard errors of the two; 0 = not known.
  double communication_error_ns = 0;
};

/// A fitted figure with half of its interval.
struct Fitted {
  double value = 0;
  std::optional<double> margin = {};  ///< Absent when the steps give no error.
};

/// T(n) = serial + parallel / n + growth x f(n) for strong scaling; serial + growth x f(n) for weak scaling, where
/// serial is all work of a rank. Source: docs/metrics.md#scaling.
struct ScalingFit {
  bool fitted = false;
  std::string reason;  ///< Why not; or, when fitted, how far to trust it.
  Fitted serial;
  Fitted parallel;  ///< At one rank; strong only.
  Fitted communication;
  Growth growth = Growth::kRing;
  bool growth_known = false;  ///< The points tell this growth from the others.
  double serial_share = 0;    ///< Of the step at the largest run.
  double communication_share = 0;
  double worst_residual = 0;  ///< Largest |measured - fitted| / measured step.

  /// The next doubling.
  double next_ranks = 0;
  double next_step_ns = 0;
  double next_low_ns = 0;  ///< Over all growths that the points allow, and their margins.
  double next_high_ns = 0;
  double next_efficiency = 0;
  std::string bound;  ///< "communication", "serial work", "nothing: ...": what takes most from the ideal.
};

/// Weighted least squares with no part below 0. Work and communication are fitted apart, since traces tell them apart.
/// In: by ranks, distinct. `base_ranks` and `base_step_ns`: what efficiency is held against. Cost: O(points).
ScalingFit FitScaling(Scaling kind, const std::vector<FitPoint>& points, double confidence);

}  // namespace lockstep::comparison
