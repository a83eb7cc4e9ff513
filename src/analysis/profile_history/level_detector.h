#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::profile_history {

/// Source of the rule and of its constants: docs/watch.md#what-a-regression-is.
struct LevelOptions {
  size_t learn_count = 8;     ///< Values from which on a level is known.
  size_t most_count = 60;     ///< Values of a level that it is known by: its first ones, so that it does not creep.
  double z_limit = 3.5;       ///< Of the modified z-score (Iglewicz and Hoaglin, 1993).
  double small_sample = 5;    ///< The limit is z_limit x (1 + small_sample / n).
  double least_ratio = 0.05;  ///< Of the level's median: smaller changes are none.
  double least_whole_ratio = 0.02;  ///< Nor smaller than this share of the whole that the figure is part of.
  size_t sustained_count = 3;       ///< Values in a row beyond the limit on one side that make a new level;
  size_t sustained_known = 2;  ///< so many where they are beyond all that a level of well_known_count values has seen.
  size_t well_known_count = 20;
  double huge_ratio = 1;   ///< One value alone makes it when it is so much worse (1: twice as much, or half),
  double huge_factor = 3;  ///< and this many times the limit away.
};

enum class LevelState : uint8_t {
  kLearning,  ///< Too few values are known.
  kSteady,
  kSuspect,  ///< Beyond the limit, not yet for long enough.
  kChanged,  ///< A new level begins with the values that were beyond the limit.
};

struct LevelChange {
  double before = 0;       ///< Median of the level that has ended.
  double after = 0;        ///< Median of the values that have begun the new one.
  size_t value_count = 0;  ///< How many these are: the last ones that were observed.
  double ratio() const { return before == 0 ? 0 : after / before - 1; }
};

/// One figure of a job, capture after capture: learns its level (median, and scaled median absolute deviation) and says
/// when it has left it. Pure: what was observed decides, no clock and no file.
class LevelDetector {
 public:
  explicit LevelDetector(const LevelOptions& options) : options_(options) {}

  /// `whole`: what the figure is part of (the step of a part of it), 0: nothing. Cost: O(most_count).
  LevelState Observe(double value, double whole);
  /// The values that were beyond the limit are taken for a new level at once: another figure of the job has shown that
  /// they are one. False when none is.
  bool AcceptSuspects();
  /// Of the last kChanged, or of AcceptSuspects.
  const LevelChange& change() const { return change_; }
  /// Median of the level; absent when no value was observed.
  std::optional<double> level() const;
  bool is_known() const { return values_.size() >= options_.learn_count; }
  /// How far from the level a value may be.
  double limit(double whole) const;

 private:
  bool IsSustained(double median) const;

  const LevelOptions options_;
  std::vector<double> values_;    ///< Of the level.
  std::vector<double> suspects_;  ///< Beyond the limit on one side, since the last that was not.
  LevelChange change_;
};

}  // namespace lockstep::profile_history
