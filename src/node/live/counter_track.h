#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace lockstep::live {

/// The values of N counters at some looks, as many as a window needs. The first counter leads: the look before its last
/// change is kept, however old, as a base for comparison between rare events.
template <size_t N>
class CounterTrack {
 public:
  using Values = std::array<std::optional<double>, N>;
  struct Point {
    int64_t taken_ns = 0;
    Values values;
  };

  /// A leading counter that goes back has restarted: earlier values are forgotten.
  void Add(int64_t taken_ns, const Values& values, int64_t window_ns) {
    if (!points_.empty() && (values[0].has_value() != points_.back().values[0].has_value() ||
                             (values[0] && *values[0] < *points_.back().values[0]))) {
      points_.clear();
    }
    // Looks that are close together are thinned, so that a window of any length has room; the newest two stay.
    const size_t count = points_.size();
    if (count > 2 && points_[count - 1].taken_ns - points_[count - 3].taken_ns < window_ns / kPointsOfWindow) {
      points_.erase(points_.end() - 2);
    }
    points_.push_back({taken_ns, values});
    while (points_.size() > 2 && points_[1].taken_ns < taken_ns - window_ns &&
           (!values[0] || *points_[1].values[0] < *values[0])) {
      points_.pop_front();
    }
    // Nothing has happened for longer than the window: of points that say the same, the first and the last will do.
    while (points_.size() > kMostPoints) points_.erase(points_.begin() + 1);
  }
  void Clear() { points_.clear(); }

  bool empty() const { return points_.empty(); }
  size_t size() const { return points_.size(); }
  const Point& newest() const { return points_.back(); }
  /// What is compared with; null: there is one point only.
  const Point* base() const { return points_.size() < 2 ? nullptr : &points_.front(); }
  /// The one before the newest.
  const Point* previous() const { return points_.size() < 2 ? nullptr : &points_[points_.size() - 2]; }
  /// By what counter `i` has grown from base to newest; nullopt: not known, or it has gone back meanwhile.
  std::optional<double> Growth(size_t i) const { return base() == nullptr ? std::nullopt : Growth(i, *base()); }
  std::optional<double> Growth(size_t i, const Point& from) const {
    const std::optional<double>& now = newest().values[i];
    const std::optional<double>& before = from.values[i];
    if (!now || !before || *now < *before) return std::nullopt;
    return *now - *before;
  }
  std::optional<double> PerSecond(size_t i) const {
    const std::optional<double> growth = Growth(i);
    if (!growth) return std::nullopt;
    const int64_t elapsed_ns = newest().taken_ns - base()->taken_ns;
    if (elapsed_ns <= 0) return std::nullopt;
    return *growth / (static_cast<double>(elapsed_ns) / 1e9);
  }

 private:
  // Two neighbours together span so much of the window, so that it has twice as many points at most.
  static constexpr int64_t kPointsOfWindow = 60;
  static constexpr size_t kMostPoints = 2 * kPointsOfWindow + 8;
  std::deque<Point> points_;
};

}  // namespace lockstep::live
