#include "node/agent/sensors/sensor_board.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace lockstep::agent {
namespace {

// Whoever asks again and again makes a sensor look that often.
constexpr auto kNewFor = std::chrono::milliseconds(100);

double Seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

Result<Reading> LookSafely(Sensor* sensor) {
  try {
    return sensor->Look();
  } catch (const std::exception& error) {  // Libraries throw; one sensor's trouble is not the daemon's.
    return Error{ErrorCode::kIo, error.what()};
  }
}

}  // namespace

const MetricSpecs& SensorMetricSpecs() {
  static const MetricSpecs specs = {
      {"lockstep_collector_present", "gauge", "collector", "1: the node has what this sensor looks at."},
      {"lockstep_collector_success", "gauge", "collector", "1: its last look succeeded, and none takes too long."},
      {"lockstep_collector_duration_seconds", "gauge", "collector", "How long its last look took."},
  };
  return specs;
}

SensorBoard::SensorBoard(std::vector<std::unique_ptr<Sensor>> sensors, std::function<void(const std::string& line)> log)
    : log_(std::move(log)) {
  for (std::unique_ptr<Sensor>& sensor : sensors) {
    auto post = std::make_unique<Post>();
    post->sensor = std::move(sensor);
    Post* const held = post.get();
    posts_.push_back(std::move(post));
    held->thread = std::jthread([this, held](const std::stop_token& stop) { Watch(held, stop); });
  }
}

SensorBoard::~SensorBoard() {
  for (const auto& post : posts_) {
    post->thread.request_stop();
    post->sensor->Stop();
  }
}

void SensorBoard::Watch(Post* post, const std::stop_token& stop) {
  std::string told;
  while (!stop.stop_requested()) {
    const Clock::time_point began = Clock::now();
    {
      const MutexLock lock(post->mutex);
      post->look_began = began;
      post->is_wanted = false;
    }
    Result<Reading> reading = LookSafely(post->sensor.get());
    MutexLock lock(post->mutex);
    post->look_began.reset();
    post->took = Clock::now() - began;
    post->has_looked = true;
    post->looked_from = began;
    post->succeeded = reading.has_value() && reading->is_whole && post->took <= post->sensor->deadline();
    const std::string trouble = reading ? reading->trouble : reading.error().ToString();
    post->reading = reading ? std::move(*reading) : Reading{post->reading.is_present, {}};
    // Once for each kind of trouble, not each second.
    if (log_ && trouble != told && !trouble.empty()) {
      lock.unlock();
      log_(fmt::format("sensor {}: {}", post->sensor->name(), trouble));
      lock.lock();
    }
    told = trouble;
    post->wake.notify_all();
    post->wake.wait_until(lock, stop, began + post->sensor->period(),
                          [post]() LOCKSTEP_REQUIRES(post->mutex) { return post->is_wanted; });
  }
}

void SensorBoard::LookNow(std::string_view name, std::chrono::nanoseconds most) {
  const Clock::time_point now = Clock::now();
  for (const auto& held : posts_) {
    Post* const post = held.get();
    if (post->sensor->name() != name) continue;
    const auto is_new = [post, since = now - kNewFor]()
                            LOCKSTEP_REQUIRES(post->mutex) { return post->looked_from >= since; };
    MutexLock lock(post->mutex);
    if (is_new()) return;
    post->is_wanted = true;
    post->wake.notify_all();
    post->wake.wait_until(lock, now + most, is_new);
  }
}

void SensorBoard::Visit(const std::function<void(const prometheus::MetricFamily& family)>& take) const {
  MetricFamilies own(SensorMetricSpecs());
  for (const auto& post : posts_) {
    const MutexLock lock(post->mutex);
    const bool is_late = post->look_began && Clock::now() - *post->look_began > post->sensor->deadline();
    if (!post->has_looked && !is_late) continue;
    const MetricLabels labels = {{"collector", post->sensor->name()}};
    own.Add("lockstep_collector_present", labels, post->reading.is_present ? 1 : 0);
    own.Add("lockstep_collector_success", labels, post->succeeded && !is_late ? 1 : 0);
    own.Add("lockstep_collector_duration_seconds", labels,
            Seconds(is_late ? Clock::now() - *post->look_began : post->took));
    // What a sensor that hangs has seen long ago is not how things are.
    if (is_late) continue;
    for (const prometheus::MetricFamily& family : post->reading.families) take(family);
  }
  for (const prometheus::MetricFamily& family : own.Take()) take(family);
}

std::vector<prometheus::MetricFamily> SensorBoard::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  Visit([&](const prometheus::MetricFamily& family) {
    MergeFamilies(std::vector<prometheus::MetricFamily>(1, family), &families);
  });
  return families;
}

}  // namespace lockstep::agent
