#include "ingest/span_follow/device_steps.h"

#include <algorithm>
#include <utility>

#include "model/stages/stage.h"

namespace lockstep::ingest::span_follow {

using model::StageSpan;
using model::StepStages;

namespace {

constexpr size_t kMostWaiting = 1 << 16;
constexpr size_t kMostSpans = 1 << 20;
constexpr int64_t kMostNs = int64_t{1} << 60;  // Of a step: more than 36 years.

std::optional<int64_t> WholeNumber(double value) {
  if (!(value >= 0 && value <= static_cast<double>(kMostNs))) return std::nullopt;
  return static_cast<int64_t>(value);
}

}  // namespace

void DeviceSteps::TakeCounter(std::string_view name, double value, const SpanOf& span_of) {
  if (!name.starts_with(model::kDeviceCounterPrefix)) return;
  const std::optional<int64_t> number = WholeNumber(value);
  if (name == model::kDeviceTimesCounter) {
    first_ = number;
  } else if (name == model::kDeviceStepCounter) {
    begun_.reset();
    if (number) begun_ = Timed{.number = *number};
  } else if (name == model::kDeviceStepEndCounter) {
    EndStep(number);
  } else if (begun_ && number && name.starts_with(model::kDeviceStagePrefix)) {
    name.remove_prefix(model::kDeviceStagePrefix.size());
    AddPart(span_of(name, *number).value_or(StageSpan(model::Stage::kOther, *number)));
  }
}

void DeviceSteps::AddPart(const StageSpan& span) {
  Timed& step = *begun_;
  if (span.duration_ns > kMostNs - step.duration_ns || step.spans.size() == kMostSpans) {
    begun_.reset();
    return;
  }
  ++step.part_count;
  step.duration_ns += span.duration_ns;
  const bool goes_on = !step.spans.empty() && step.spans.back().stage == span.stage;
  if (goes_on && span.stage != model::Stage::kCommunication) {
    step.spans.back().duration_ns += span.duration_ns;
  } else if (span.duration_ns > 0) {
    step.spans.push_back(span);
  }
}

/// Records are lost now and then: of a step that is not whole nothing is known.
void DeviceSteps::EndStep(std::optional<int64_t> part_count) {
  if (!begun_) return;
  Timed step = *std::exchange(begun_, std::nullopt);
  if (part_count != static_cast<int64_t>(step.part_count) || timed_.size() == kMostWaiting ||
      span_count_ + step.spans.size() > kMostSpans) {
    return;
  }
  newest_ = step.number;
  if (!first_) first_ = step.number;
  span_count_ += step.spans.size();
  timed_.push_back(std::move(step));
}

void DeviceSteps::PopTimed() {
  span_count_ -= timed_.front().spans.size();
  timed_.pop_front();
}

std::vector<StepStages> DeviceSteps::Take(std::vector<StepStages> from_host) {
  std::vector<StepStages> complete;
  for (StepStages& step : from_host) waiting_.push_back(std::move(step));
  while (!waiting_.empty()) {
    StepStages& step = waiting_.front();
    while (!timed_.empty() && timed_.front().number < step.number) PopTimed();
    // The device begins with a step when it has ended the one before, and no earlier than the host.
    const int64_t start_ns = std::max(step.start_ns, end_ns_);
    const bool is_timed =
        !timed_.empty() && timed_.front().number == step.number && timed_.front().duration_ns <= INT64_MAX - start_ns;
    if (is_timed) {
      step.start_ns = start_ns;
      step.duration_ns = timed_.front().duration_ns;
      step.spans = timed_.front().spans;
      end_ns_ = start_ns + step.duration_ns;
      PopTimed();
    } else if (first_ && step.number >= *first_) {
      if (newest_.value_or(-1) < step.number && waiting_.size() <= kMostWaiting) break;
      waiting_.pop_front();
      continue;
    } else if (start_ns > step.start_ns && step.duration_ns <= INT64_MAX - start_ns) {
      step.start_ns = start_ns;
      end_ns_ = start_ns + step.duration_ns;
    }
    complete.push_back(std::move(step));
    waiting_.pop_front();
  }
  return complete;
}

}  // namespace lockstep::ingest::span_follow
