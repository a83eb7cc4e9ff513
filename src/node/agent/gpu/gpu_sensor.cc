#include "node/agent/gpu/gpu_sensor.h"

#include <algorithm>
#include <utility>

namespace lockstep::agent {
namespace {

constexpr auto kAnswersWithin = std::chrono::seconds(5);
// A driver may be installed after this has started.
constexpr auto kSearchEvery = std::chrono::seconds(60);
// Killed helpers that the kernel keeps: with so many no further one is started, whatever the time.
constexpr size_t kMostStuck = 2;

}  // namespace

GpuSensor::GpuSensor(GpuSensorOptions options)
    : options_(std::move(options)),
      helper_(options_.program, options_.library, kAnswersWithin),
      metrics_(options_.host, options_.expected_count) {}

// Ending a helper that hangs takes a moment more.
std::chrono::milliseconds GpuSensor::deadline() const { return kAnswersWithin + std::chrono::seconds(1); }

GpuMetrics::Unresponsive GpuSensor::Unresponsive() const {
  GpuMetrics::Unresponsive all;
  for (const auto& [gpu, until] : hung_) all.insert(gpu);
  return all;
}

Result<Reading> GpuSensor::Standing() const {
  if (!hung_.empty()) return Reading{true, metrics_.Collect(Unresponsive()), false};
  // The expected GPUs and the counts are reported without a driver, too, above all when it has failed.
  return Reading{is_present_, metrics_.Collect({}), trouble_.empty(), trouble_};
}

Result<Reading> GpuSensor::Look() {
  const Clock::time_point now = Clock::now();
  const size_t stuck = helper_.CountStuck();  // At each look: one that took its time to die is not a zombie for longer.
  if (!helper_.is_running()) {
    if (now < start_again_ || stuck >= kMostStuck) return Standing();
    if (!hung_.empty()) replaced_ = now;
    if (Status started = helper_.Start(); !started) {
      trouble_ = started.error().ToString();
      start_again_ = now + kSearchEvery;
      return Standing();
    }
  }
  GpuRequest request;
  for (const auto& [gpu, until] : hung_) {
    if (gpu && now < until) request.skipped.push_back(*gpu);
  }
  GpuAnswer answer = helper_.Ask(request);
  if (answer.kind == GpuAnswer::Kind::kHung) return AfterHang(answer);
  if (answer.kind == GpuAnswer::Kind::kReading && answer.reading.state == GpuReading::State::kRead) {
    std::erase_if(hung_, [&](const auto& each) { return !each.first || now >= each.second; });
    trouble_.clear();
    is_present_ = answer.reading.listed_count > 0;
    metrics_.Take(std::move(answer.reading), Clock::now());
    return Reading{is_present_, metrics_.Collect(Unresponsive()), hung_.empty()};
  }
  // No driver, one that does not work, or a helper that has died: all may be otherwise in a while.
  helper_.End();
  hung_.clear();
  start_again_ = now + kSearchEvery;
  is_present_ = true;
  trouble_ = answer.trouble;
  if (answer.kind == GpuAnswer::Kind::kReading) {
    is_present_ = answer.reading.state != GpuReading::State::kAbsent;
    trouble_ = is_present_ ? answer.reading.message : "";
    metrics_.Take(std::move(answer.reading), Clock::now());
  } else {
    metrics_.Forget();
  }
  return Standing();
}

Result<Reading> GpuSensor::AfterHang(const GpuAnswer& answer) {
  const Clock::time_point now = Clock::now();
  metrics_.Forget();
  hung_[answer.gpu] = now + options_.retry;
  // Without that GPU the others may be read on; without the driver nothing can be.
  start_again_ = answer.gpu ? now : now + options_.retry;
  if (replaced_) start_again_ = std::max(start_again_, *replaced_ + options_.retry);
  return Standing();
}

}  // namespace lockstep::agent
