#include "analysis/comparison/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/median.h"

namespace lockstep::comparison {
namespace {

constexpr size_t kMaxSamples = 2000;
constexpr size_t kMinCorrelated = 8;
constexpr double kTrustHalf = 8;  // values from which on a measured correlation counts for more than half
constexpr size_t kMaxExact = 60;  // values on both sides together, for the exact distribution of U

/// Ranks from 1; equal values share their mean rank.
std::vector<double> RanksOf(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t x, size_t y) { return values[x] < values[y]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    for (size_t i = first; i <= last; ++i) ranks[order[i]] = (static_cast<double>(first + last)) / 2 + 1;
    first = last + 1;
  }
  return ranks;
}

std::vector<double> Thinned(const std::vector<double>& values) {
  if (values.size() <= kMaxSamples) return values;
  std::vector<double> kept(kMaxSamples);
  for (size_t i = 0; i < kMaxSamples; ++i) kept[i] = values[i * values.size() / kMaxSamples];
  return kept;
}

/// P(U <= u) for u = 0, 1, ...: how many of the ways to mix n and m values have that many pairs out of order.
std::vector<double> ExactTail(size_t n, size_t m) {
  // The distribution of U is the product of (1 - x^(m + i)) / (1 - x^i), i = 1 .. n.
  const size_t size = n * m + 1;
  std::vector<double> ways(size, 0);
  ways[0] = 1;
  for (size_t i = 1; i <= n; ++i) {
    for (size_t u = size; u-- > m + i;) ways[u] -= ways[u - m - i];
    for (size_t u = i; u < size; ++u) ways[u] += ways[u - i];
  }
  const double total = std::accumulate(ways.begin(), ways.end(), 0.0);
  double sum = 0;
  for (double& way : ways) {
    sum += way;
    way = sum / total;
  }
  return ways;
}

/// Chance that a statistic is as far below its middle as `u` by accident, one-sided, for independent values.
class TailOfU {
 public:
  TailOfU(size_t n, size_t m) : n_(static_cast<double>(n)), m_(static_cast<double>(m)) {
    if (n + m <= kMaxExact) exact_ = ExactTail(n, m);
  }
  double operator()(double u) const {
    if (u < 0) return 0;
    const double middle = n_ * m_ / 2;
    if (!exact_.empty()) return std::min(0.5, exact_[static_cast<size_t>(std::min(u, middle))]);
    const double spread = std::sqrt(n_ * m_ * (n_ + m_ + 1) / 12);
    return NormalTail((middle - 0.5 - std::min(u, middle - 0.5)) / spread);
  }

 private:
  double n_;
  double m_;
  std::vector<double> exact_;
};

/// The same chance when the values are worth only `share` of their number: the distance in units of the statistic's
/// spread shrinks by the square root of it.
double Correlated(double one_sided, double share) {
  if (one_sided <= 0) return 0;
  if (one_sided >= 0.5) return 0.5;
  return NormalTail(NormalQuantile(one_sided) * std::sqrt(share));
}

/// Regularised incomplete beta function by its continued fraction (modified Lentz).
double IncompleteBeta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - IncompleteBeta(b, a, 1 - x);
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x)) / a;
  constexpr double kTiny = 1e-300;
  double c = 1;
  double d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < kTiny ? kTiny : d);
  double fraction = d;
  for (int i = 1; i <= 300; ++i) {
    for (const bool even : {true, false}) {
      const double k = i;
      const double term = even ? k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k))
                               : -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
      d = 1 + term * d;
      c = 1 + term / c;
      d = 1 / (std::abs(d) < kTiny ? kTiny : d);
      c = std::abs(c) < kTiny ? kTiny : c;
      fraction *= d * c;
    }
    if (std::abs(d * c - 1) < 1e-14) break;
  }
  return front * fraction;
}

}  // namespace

double Mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  return lockstep::Median(&values);
}

double Variance(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / static_cast<double>(values.size() - 1);
}

double EffectiveCount(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  if (values.size() < kMinCorrelated) return n;  // nothing can be said of the correlation
  const std::vector<double> ranks = RanksOf(values);
  const double mean = (n + 1) / 2;
  double products = 0;
  double squares = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    squares += (ranks[i] - mean) * (ranks[i] - mean);
    if (i + 1 < ranks.size()) products += (ranks[i] - mean) * (ranks[i + 1] - mean);
  }
  if (squares <= 0) return n;
  const double measured = products / squares;
  // A series without correlation measures -1/n; a short one measures little else than chance, so it is trusted less.
  const double r = std::clamp((measured + 1 / n) * n / (n + kTrustHalf), 0.0, 0.98);
  return std::max(1.0, n * (1 - r) / (1 + r));
}

double NormalTail(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

double NormalQuantile(double p) {
  double low = -40;
  double high = 40;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = (low + high) / 2;
    (NormalTail(middle) > p ? low : high) = middle;
  }
  return (low + high) / 2;
}

double StudentTail(double t, double degrees) { return IncompleteBeta(degrees / 2, 0.5, degrees / (degrees + t * t)); }

double StudentQuantile(double p, double degrees) {
  double low = 0;
  double high = 1e9;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (StudentTail(middle, degrees) > p ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::optional<Shift> EstimateShift(const std::vector<double>& all_a, const std::vector<double>& all_b,
                                   double confidence) {
  if (all_a.empty() || all_b.empty()) return std::nullopt;
  const std::vector<double> a = Thinned(all_a);
  const std::vector<double> b = Thinned(all_b);
  std::vector<double> differences;
  differences.reserve(a.size() * b.size());
  for (const double from : a) {
    for (const double to : b) differences.push_back(to - from);
  }
  Shift shift;
  shift.estimate = Median(differences);

  // Thinning keeps every k-th step, which is worth as much as its own correlation says.
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  const double worth_a = EffectiveCount(a);
  const double worth_b = EffectiveCount(b);
  // The spread of U goes with sqrt(1/n + 1/m): the share that the effective counts leave of it.
  const double share = std::min(1.0, (1 / n + 1 / m) / (1 / worth_a + 1 / worth_b));
  const TailOfU tail(a.size(), b.size());

  double below = 0;  // pairs in which b is smaller, ties half
  for (const double difference : differences) below += difference < 0 ? 1 : difference == 0 ? 0.5 : 0;
  const double u = std::min(below, n * m - below);
  shift.p = std::min(1.0, 2 * Correlated(tail(std::floor(u)), share));
  if (std::all_of(differences.begin(), differences.end(), [](double d) { return d == 0; })) shift.p = 1;

  // The largest k such that leaving out the k smallest and k largest differences keeps the confidence.
  const double miss = (1 - confidence) / 2;
  if (Correlated(tail(0), share) > miss) return shift;
  double good = 0;
  double bad = std::floor(n * m / 2) + 1;
  while (bad - good > 1) {
    const double middle = std::floor((good + bad) / 2);
    (Correlated(tail(middle), share) <= miss ? good : bad) = middle;
  }
  const auto k = static_cast<std::ptrdiff_t>(good);
  std::nth_element(differences.begin(), differences.begin() + k, differences.end());
  shift.low = differences[static_cast<size_t>(k)];
  const auto top = static_cast<std::ptrdiff_t>(differences.size()) - 1 - k;
  std::nth_element(differences.begin(), differences.begin() + top, differences.end());
  shift.high = differences[static_cast<size_t>(top)];
  return shift;
}

double WelchP(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2 || b.size() < 2) return 1;
  const double worth_a = std::max(2.0, EffectiveCount(a));
  const double worth_b = std::max(2.0, EffectiveCount(b));
  const double part_a = Variance(a) / worth_a;
  const double part_b = Variance(b) / worth_b;
  const double difference = Mean(b) - Mean(a);
  if (part_a + part_b <= 0) return difference == 0 ? 1 : 0;
  const double t = difference / std::sqrt(part_a + part_b);
  const double degrees =
      (part_a + part_b) * (part_a + part_b) / (part_a * part_a / (worth_a - 1) + part_b * part_b / (worth_b - 1));
  return StudentTail(t, degrees);
}

std::vector<double> HolmAdjust(const std::vector<double>& p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return p[x] < p[y]; });
  std::vector<double> adjusted(p.size(), 1);
  double largest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, std::min(1.0, p[order[i]] * static_cast<double>(p.size() - i)));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

}  // namespace lockstep::comparison
