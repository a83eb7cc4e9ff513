#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace lockstep::analysis {

/// The value below which `share` (0..1) of sorted values lie, interpolated between neighbours: position share x (n -
/// 1), as NumPy's default. `sorted` is not empty.
template <typename T>
double QuantileOfSorted(const std::vector<T>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const auto low = static_cast<double>(sorted[below]);
  return low + (static_cast<double>(sorted[above]) - low) * (position - static_cast<double>(below));
}

/// Minimum, quartiles, maximum. `values` is not empty; it is sorted.
template <typename T>
std::array<double, 5> FiveNumbers(std::vector<T>* values) {
  std::sort(values->begin(), values->end());
  return {static_cast<double>(values->front()), QuantileOfSorted(*values, 0.25), QuantileOfSorted(*values, 0.5),
          QuantileOfSorted(*values, 0.75), static_cast<double>(values->back())};
}

}  // namespace lockstep::analysis
