#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace lockstep {

// Of values that are at least one; all three reorder them.

/// The value in the middle, of two the upper.
template <typename T>
T UpperMedian(std::vector<T>* values) {
  const auto middle = values->begin() + static_cast<std::ptrdiff_t>(values->size() / 2);
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

/// The value in the middle, of two the lower.
template <typename T>
T LowerMedian(std::vector<T>* values) {
  const auto middle = values->begin() + static_cast<std::ptrdiff_t>((values->size() - 1) / 2);
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

/// The value in the middle, of two their mean, for whole numbers rounded to the lower.
template <typename T>
T Median(std::vector<T>* values) {
  const T upper = UpperMedian(values);
  if (values->size() % 2 == 1) return upper;
  const T lower = *std::max_element(values->begin(), values->begin() + static_cast<std::ptrdiff_t>(values->size() / 2));
  if constexpr (std::is_integral_v<T>) {
    return lower + (upper - lower) / 2;
  } else {
    return (upper + lower) / 2;
  }
}

}  // namespace lockstep
