#include "analysis/profile_history/level_detector.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/comparison/statistics.h"

namespace lockstep::profile_history {
namespace {

using comparison::Median;

// Make the median absolute deviation and the range between quartiles of a normal distribution its standard deviation.
constexpr double kDeviationScale = 1.4826;
constexpr double kQuartileScale = 0.7413;

/// The larger of the two: the former is 0 where half of the values are the same, as of a figure that has two states.
double RobustDeviation(std::vector<double> values, double median) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t quarter = values.size() / 4;
  const double quartiles = values[values.size() - 1 - quarter] - values[quarter];
  for (double& value : values) value = std::abs(value - median);
  return std::max(kDeviationScale * Median(std::move(values)), kQuartileScale * quartiles);
}

}  // namespace

std::optional<double> LevelDetector::level() const {
  if (values_.empty()) return std::nullopt;
  return Median(values_);
}

double LevelDetector::limit(double whole) const {
  const double median = Median(values_);
  const double n = static_cast<double>(std::max<size_t>(values_.size(), 1));
  const double spread = options_.z_limit * (1 + options_.small_sample / n) * RobustDeviation(values_, median);
  return std::max({spread, options_.least_ratio * std::abs(median), options_.least_whole_ratio * whole});
}

LevelState LevelDetector::Observe(double value, double whole) {
  const auto keep = [this](double kept) {
    if (values_.size() < options_.most_count) values_.push_back(kept);
  };
  if (!is_known()) {
    keep(value);
    return LevelState::kLearning;
  }
  const double median = Median(values_);
  const double most = limit(whole);
  const double distance = value - median;
  const bool same_side = !suspects_.empty() && (suspects_.front() > median) == (distance > 0);
  if (std::abs(distance) <= most || !same_side) {
    // One capture that was different is part of the level: the median bears it.
    for (const double suspect : suspects_) keep(suspect);
    suspects_.clear();
  }
  if (std::abs(distance) <= most) {
    keep(value);
    return LevelState::kSteady;
  }
  suspects_.push_back(value);
  const double factor = median == 0 ? 1 : value / median;
  const bool is_huge = (factor >= 1 + options_.huge_ratio || factor <= 1 / (1 + options_.huge_ratio)) &&
                       std::abs(distance) >= options_.huge_factor * most;
  if (!is_huge && !IsSustained(median)) return LevelState::kSuspect;
  AcceptSuspects();
  return LevelState::kChanged;
}

bool LevelDetector::IsSustained(double median) const {
  if (suspects_.size() >= options_.sustained_count) return true;
  if (suspects_.size() < options_.sustained_known || values_.size() < options_.well_known_count) return false;
  // A level that has seen as much before, now and then, sees it twice in a row now and then.
  const auto [least, most] = std::minmax_element(values_.begin(), values_.end());
  const auto [least_suspect, most_suspect] = std::minmax_element(suspects_.begin(), suspects_.end());
  return *least_suspect > median ? *least_suspect > *most : *most_suspect < *least;
}

bool LevelDetector::AcceptSuspects() {
  if (suspects_.empty()) return false;
  change_ = {.before = Median(values_), .after = Median(suspects_), .value_count = suspects_.size()};
  values_ = std::exchange(suspects_, {});
  return true;
}

}  // namespace lockstep::profile_history
