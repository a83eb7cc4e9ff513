#include "analysis/comparison/scaling_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/comparison/statistics.h"

namespace lockstep::comparison {
namespace {

constexpr Growth kGrowths[] = {Growth::kRing, Growth::kLogarithm, Growth::kLinear};

/// y = x0 + x1 g, both at least 0, or y = x1 g alone.
struct Line {
  double intercept = 0;
  double slope = 0;
  // Covariance of the two.
  double var_intercept = 0;
  double var_slope = 0;
  double covariance = 0;
  double chi2 = 0;  ///< Weighted squares of what is left.
  double at(double g) const { return intercept + slope * g; }
  double error_at(double g) const {
    return std::sqrt(std::max(0.0, var_intercept + g * g * var_slope + 2 * g * covariance));
  }
};

struct Sample {
  double g = 0;
  double y = 0;
  double weight = 1;
};

void Measure(const std::vector<Sample>& samples, Line* line) {
  line->chi2 = 0;
  for (const Sample& s : samples) line->chi2 += s.weight * (s.y - line->at(s.g)) * (s.y - line->at(s.g));
}

Line FitConstant(const std::vector<Sample>& samples) {
  double weight = 0;
  double sum = 0;
  for (const Sample& s : samples) {
    weight += s.weight;
    sum += s.weight * s.y;
  }
  Line line;
  line.intercept = std::max(0.0, sum / weight);
  line.var_intercept = 1 / weight;
  Measure(samples, &line);
  return line;
}

Line FitSlope(const std::vector<Sample>& samples) {
  double squares = 0;
  double products = 0;
  for (const Sample& s : samples) {
    squares += s.weight * s.g * s.g;
    products += s.weight * s.g * s.y;
  }
  Line line;
  if (squares > 0) {
    line.slope = std::max(0.0, products / squares);
    line.var_slope = 1 / squares;
  }
  Measure(samples, &line);
  return line;
}

Line FitBoth(const std::vector<Sample>& samples) {
  double w = 0, wg = 0, wgg = 0, wy = 0, wgy = 0;
  for (const Sample& s : samples) {
    w += s.weight;
    wg += s.weight * s.g;
    wgg += s.weight * s.g * s.g;
    wy += s.weight * s.y;
    wgy += s.weight * s.g * s.y;
  }
  const double determinant = w * wgg - wg * wg;
  if (determinant <= 0) return FitConstant(samples);
  Line line;
  line.slope = (w * wgy - wg * wy) / determinant;
  line.intercept = (wgg * wy - wg * wgy) / determinant;
  line.var_slope = w / determinant;
  line.var_intercept = wgg / determinant;
  line.covariance = -wg / determinant;
  if (line.slope < 0) return FitConstant(samples);
  if (line.intercept < 0) return FitSlope(samples);
  Measure(samples, &line);
  return line;
}

/// Weights from errors; where none is known all points count alike, and the errors come from what is left over.
std::vector<Sample> SamplesOf(const std::vector<FitPoint>& points, bool work, double (*g_of)(double), bool* known) {
  *known = true;
  for (const FitPoint& p : points) *known = *known && (work ? p.work_error_ns : p.communication_error_ns) > 0;
  std::vector<Sample> samples;
  for (const FitPoint& p : points) {
    const double error = work ? p.work_error_ns : p.communication_error_ns;
    samples.push_back({g_of(p.ranks), work ? p.work_ns : p.communication_ns, *known ? 1 / (error * error) : 1.0});
  }
  return samples;
}

double InverseOf(double ranks) { return 1 / ranks; }
double RingOf(double ranks) { return GrowthAt(Growth::kRing, ranks); }
double LogarithmOf(double ranks) { return GrowthAt(Growth::kLogarithm, ranks); }
double LinearOf(double ranks) { return GrowthAt(Growth::kLinear, ranks); }

/// What the errors are to be multiplied by: where the points lie further from the fit than the noise says, the fit's
/// form is off, and the margins must say so.
double Inflation(const Line& line, size_t free, bool known) {
  if (free == 0) return known ? 1 : std::numeric_limits<double>::quiet_NaN();
  const double left = std::sqrt(line.chi2 / static_cast<double>(free));
  return known ? std::max(1.0, left) : left;
}

std::optional<double> Margin(double error, double inflation, double quantile) {
  if (!std::isfinite(inflation)) return std::nullopt;
  return error * inflation * quantile;
}

struct CommunicationFit {
  Growth growth = Growth::kRing;
  Line line;
  double inflation = 1;
};

}  // namespace

const char* ScalingName(Scaling kind) { return kind == Scaling::kWeak ? "weak" : "strong"; }

const char* GrowthName(Growth growth) {
  static constexpr const char* kNames[] = {"2(n-1)/n", "log2(n)", "n-1"};
  return kNames[static_cast<size_t>(growth)];
}

double GrowthAt(Growth growth, double ranks) {
  switch (growth) {
    case Growth::kRing: return 2 * (ranks - 1) / ranks;
    case Growth::kLogarithm: return std::log2(ranks);
    case Growth::kLinear: return ranks - 1;
  }
  return 0;
}

ScalingFit FitScaling(Scaling kind, const std::vector<FitPoint>& points, double confidence) {
  ScalingFit fit;
  if (points.size() < 2) {
    fit.reason = "one size gives a point, not a curve";
    return fit;
  }
  const double quantile = NormalQuantile((1 - confidence) / 2);
  bool work_known = false;
  const std::vector<Sample> work = SamplesOf(points, true, InverseOf, &work_known);
  const Line work_line = kind == Scaling::kStrong ? FitBoth(work) : FitConstant(work);
  const size_t work_free = points.size() - (kind == Scaling::kStrong ? 2 : 1);
  const double work_inflation = Inflation(work_line, work_free, work_known);

  // One unknown per growth function; runs of one rank do not determine it.
  std::vector<FitPoint> several;
  for (const FitPoint& p : points) {
    if (p.ranks > 1) several.push_back(p);
  }
  std::vector<CommunicationFit> fits;
  bool communication_known = false;
  for (const Growth growth : kGrowths) {
    const auto g_of = growth == Growth::kRing ? RingOf : growth == Growth::kLogarithm ? LogarithmOf : LinearOf;
    const std::vector<Sample> samples = SamplesOf(several, false, g_of, &communication_known);
    CommunicationFit candidate{growth, FitSlope(samples), 1};
    candidate.inflation = Inflation(candidate.line, several.size() - 1, communication_known);
    fits.push_back(candidate);
  }
  std::stable_sort(fits.begin(), fits.end(), [](const auto& x, const auto& y) { return x.line.chi2 < y.line.chi2; });
  // Without a point to spare every growth fits; otherwise those stay that are not much worse than the best one. Errors
  // between runs are larger than between steps: half a percent of the time is granted to every point.
  if (several.size() >= 2) {
    double slack = 0;
    for (const FitPoint& p : several) {
      const double error = communication_known ? p.communication_error_ns : 1;
      slack += std::pow(0.005 * p.communication_ns / error, 2);
    }
    const double limit = std::max(fits.front().line.chi2, slack) * 4 + 4 * (communication_known ? 1 : 0);
    std::erase_if(fits, [&](const CommunicationFit& candidate) { return candidate.line.chi2 > limit; });
  }
  const CommunicationFit& best = fits.front();

  fit.fitted = true;
  fit.serial = {work_line.intercept, Margin(std::sqrt(work_line.var_intercept), work_inflation, quantile)};
  if (kind == Scaling::kStrong) {
    fit.parallel = {work_line.slope, Margin(std::sqrt(work_line.var_slope), work_inflation, quantile)};
  }
  fit.communication = {best.line.slope, Margin(std::sqrt(best.line.var_slope), best.inflation, quantile)};
  fit.growth = best.growth;
  fit.growth_known = fits.size() == 1 && several.size() >= 2;

  const auto step_at = [&](const CommunicationFit& comm, double ranks) {
    return work_line.at(1 / ranks) + comm.line.slope * GrowthAt(comm.growth, ranks);
  };
  for (const FitPoint& p : points) {
    const double measured = p.work_ns + p.communication_ns;
    if (measured > 0)
      fit.worst_residual = std::max(fit.worst_residual, std::abs(measured - step_at(best, p.ranks)) / measured);
  }
  const double largest = points.back().ranks;
  const double now = step_at(best, largest);
  if (now > 0) {
    fit.serial_share = work_line.intercept / now;
    fit.communication_share = best.line.slope * GrowthAt(best.growth, largest) / now;
  }

  const double next = 2 * largest;
  fit.next_ranks = next;
  fit.next_step_ns = step_at(best, next);
  fit.next_low_ns = std::numeric_limits<double>::infinity();
  fit.next_high_ns = 0;
  for (const CommunicationFit& comm : fits) {
    const double g = GrowthAt(comm.growth, next);
    const double work_error = work_line.error_at(1 / next) * (std::isfinite(work_inflation) ? work_inflation : 0);
    const double comm_error = std::sqrt(comm.line.var_slope) * g * (std::isfinite(comm.inflation) ? comm.inflation : 0);
    const double margin = quantile * std::hypot(work_error, comm_error);
    fit.next_low_ns = std::min(fit.next_low_ns, std::max(0.0, step_at(comm, next) - margin));
    fit.next_high_ns = std::max(fit.next_high_ns, step_at(comm, next) + margin);
  }
  const double first = points.front().ranks;
  const double first_step = points.front().work_ns + points.front().communication_ns;
  const double ideal = kind == Scaling::kStrong ? first_step * first / next : first_step;
  fit.next_efficiency = fit.next_step_ns > 0 ? ideal / fit.next_step_ns : 0;

  const double communication_next = best.line.slope * GrowthAt(best.growth, next);
  const double serial_loss = kind == Scaling::kStrong ? work_line.intercept * (1 - first / next) : 0;
  if (std::max(communication_next, serial_loss) < 0.02 * fit.next_step_ns) {
    fit.bound = "nothing in sight";
  } else {
    fit.bound = communication_next >= serial_loss ? "communication" : "serial work";
  }

  if (work_free == 0) {
    fit.reason =
        fmt::format("{} points for as many unknowns: the fit goes through them, its form is untested", points.size());
  } else if (fit.worst_residual > 0.1) {
    fit.reason = fmt::format("the fit misses a point by {:.0f} %: something else grows with the number of ranks",
                             fit.worst_residual * 100);
  } else {
    fit.reason = fmt::format("the fit meets every point within {:.1f} %", fit.worst_residual * 100);
  }
  if (!fit.growth_known) {
    fit.reason += several.size() < 2 ? "; one size with communication does not say how that grows"
                                     : "; the points do not tell how communication grows";
  }
  return fit;
}

}  // namespace lockstep::comparison
