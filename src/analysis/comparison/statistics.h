#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace lockstep::comparison {

// Figures on short, correlated series of measurements (one value a step). Deterministic: no random numbers.
// Source of the formulas: docs/metrics.md#compare.

double Mean(const std::vector<double>& values);      ///< 0 for none.
double Median(std::vector<double> values);           ///< 0 for none; the mean of the middle two for an even number.
double Variance(const std::vector<double>& values);  ///< Sample variance (n - 1); 0 below two values.

/// How many independent values a series of correlated ones is worth, in [1, n]: n (1 - r) / (1 + r) with r the
/// autocorrelation at lag 1 of the values' ranks, plus 1/n (its bias without correlation), times n / (n + 8) (short
/// series measure chance), where that is above 0. Below 8 values it is n, because so few values do not show
/// correlation.
double EffectiveCount(const std::vector<double>& values);

/// The upper tail of the standard normal distribution, and the value that has this upper tail (p in (0, 1)).
double NormalTail(double z);
double NormalQuantile(double p);
/// Two-sided tail probability of Student's t, and the value whose two-sided tail is p. degrees > 0.
double StudentTail(double t, double degrees);
double StudentQuantile(double p, double degrees);

/// B against A: the median of all differences b - a (Hodges and Lehmann), with the interval that inverts the test of
/// Mann and Whitney, exact in its distribution for small samples, widened for correlation between steps.
struct Shift {
  double estimate = 0;
  /// Absent when there are too few values for an interval of this confidence.
  std::optional<double> low = {};
  std::optional<double> high = {};
  double p = 1;  ///< Two-sided; 1 with too few values.
  bool differs() const { return low && (*low > 0 || *high < 0); }
};

/// `confidence` in (0, 1), such as 0.99. Absent without values on either side. Cost: O(n_a n_b), at most 4 million
/// pairs: longer series are thinned evenly.
std::optional<Shift> EstimateShift(const std::vector<double>& a, const std::vector<double>& b, double confidence);

/// Two-sided p of Welch's t with effective counts; 1 below two values on a side or without any variation and
/// difference, 0 for a difference without any variation.
double WelchP(const std::vector<double>& a, const std::vector<double>& b);

/// Holm's correction: adjusted p in the order given; the chance of any false claim among them stays below the limit
/// that they are compared with.
std::vector<double> HolmAdjust(const std::vector<double>& p);

}  // namespace lockstep::comparison
