#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "node/agent/sensors/metric_spec.h"
#include "node/agent/sensors/sensor.h"

namespace lockstep::agent {

/// lockstep_collector_present, _success, _duration_seconds.
const MetricSpecs& SensorMetricSpecs();

/// Reads all sensors periodically, each in a thread of its own, and keeps their newest readings: a caller waits for
/// none of them.
class SensorBoard {
 public:
  explicit SensorBoard(std::vector<std::unique_ptr<Sensor>> sensors,
                       std::function<void(const std::string& line)> log = nullptr);
  ~SensorBoard();
  SensorBoard(const SensorBoard&) = delete;
  SensorBoard& operator=(const SensorBoard&) = delete;

  /// Newest readings, and how each sensor fares. Thread-safe; takes no longer than copying them.
  std::vector<prometheus::MetricFamily> Collect() const;
  /// The same without a copy of them all: families of one name may come twice. `take` must be quick, a sensor may wait.
  void Visit(const std::function<void(const prometheus::MetricFamily& family)>& take) const;
  /// Has the sensor of that name look at once, unless it began to a tenth of a second ago or later, and waits until it
  /// has; `most` at most. For who needs what it leaves elsewhere to be new. Thread-safe.
  void LookNow(std::string_view name, std::chrono::nanoseconds most);

 private:
  using Clock = std::chrono::steady_clock;
  struct Post {
    std::unique_ptr<Sensor> sensor;
    mutable Mutex mutex;
    std::condition_variable_any wake;
    std::optional<Clock::time_point> look_began LOCKSTEP_GUARDED_BY(mutex);  ///< Of the look under way.
    bool has_looked LOCKSTEP_GUARDED_BY(mutex) = false;
    Clock::time_point looked_from LOCKSTEP_GUARDED_BY(mutex) = {};  ///< When the last one began that is done.
    bool is_wanted LOCKSTEP_GUARDED_BY(mutex) = false;              ///< Before its time.
    bool succeeded LOCKSTEP_GUARDED_BY(mutex) = false;
    Clock::duration took LOCKSTEP_GUARDED_BY(mutex) = {};
    Reading reading LOCKSTEP_GUARDED_BY(mutex);
    std::jthread thread;
  };
  void Watch(Post* post, const std::stop_token& stop);

  const std::function<void(const std::string&)> log_;
  std::vector<std::unique_ptr<Post>> posts_;
};

}  // namespace lockstep::agent
