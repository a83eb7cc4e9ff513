#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace lockstep::live {

/// The growth of a counter of rare events within a window. Its value when first seen does not count; a counter that
/// goes back has restarted, and its new value is all growth.
class RecentGrowth {
 public:
  void Add(int64_t taken_ns, double total, int64_t window_ns) {
    const double growth = !total_ ? 0 : total >= *total_ ? total - *total_ : total;
    total_ = total;
    Forget(taken_ns, window_ns);
    if (growth <= 0) return;
    if (events_.size() == kMostEvents) {  // Its oldest ones end together.
      events_[1].count += events_.front().count;
      events_.pop_front();
    }
    events_.push_back({taken_ns, growth});
  }
  /// Time passes also where the counter is not heard of any more.
  void Forget(int64_t now_ns, int64_t window_ns) {
    while (!events_.empty() && events_.front().taken_ns < now_ns - window_ns) events_.pop_front();
  }
  double count() const {
    double sum = 0;
    for (const Event& event : events_) sum += event.count;
    return sum;
  }

 private:
  static constexpr size_t kMostEvents = 64;
  struct Event {
    int64_t taken_ns = 0;
    double count = 0;
  };
  std::optional<double> total_;
  std::deque<Event> events_;
};

}  // namespace lockstep::live
