#include "node/agent/job_metrics/rank_meter.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace lockstep::agent {
namespace {

using ingest::span_follow::Followed;
using ingest::span_follow::FollowedRequest;
using model::At;
using model::Stage;

constexpr size_t kRecentSteps = 100;
constexpr size_t kMostValues = 256;
constexpr size_t kMostNameBytes = 64;
constexpr size_t kMostRequests = 1 << 16;
constexpr size_t kMostGaps = 4096;  // Of one request; what comes after counts towards its mean only.
constexpr size_t kMostGapsOfAll = 1 << 19;
constexpr std::string_view kAmounts[] = {"samples", "tokens", "model_flops"};

}  // namespace

void RankMeter::Take(const Followed& followed, const std::function<const std::string&(uint32_t)>& name_of) {
  ended_requests_.clear();
  record_count_ += followed.record_count;
  missed_count_ += followed.missed_count;
  dropped_count_ = followed.dropped_count;
  has_ended_ = followed.has_ended;
  new_steps_ = cutter_.Take(followed, name_of);
  for (const model::StepStages& step : new_steps_) TakeStep(step);
  if (!followed.steps.empty()) dropped_at_step_ = dropped_count_;
  TakeOpen(followed, name_of);
  for (const auto& counter : followed.counters) {
    const std::string& name = name_of(counter.name);
    if (!model::IsDeviceTime(name)) TakeCounter(name, counter.value);
  }
  for (const FollowedRequest& event : followed.requests) TakeRequest(event, name_of(event.name));
}

void RankMeter::TakeStep(const model::StepStages& step) {
  const int64_t end_ns = step.start_ns + step.duration_ns;
  ++step_count_;
  step_ns_ += step.duration_ns;
  recent_steps_ns_.push_back(step.duration_ns);
  if (recent_steps_ns_.size() > kRecentSteps) recent_steps_ns_.pop_front();
  last_step_ = step.number;
  last_step_end_ns_ = std::max(last_step_end_ns_.value_or(end_ns), end_ns);
  for (const model::StageSpan& span : step.spans) At(stage_ns_, span.stage) += span.duration_ns;
}

void RankMeter::TakeOpen(const Followed& followed, const std::function<const std::string&(uint32_t)>& name_of) {
  open_phase_.reset();
  if (followed.open.empty()) return;
  const uint64_t thread = followed.open.front().thread_id;
  for (const auto& span : followed.spans) {
    if (span.thread_id == thread) newest_end_ns_ = std::max(newest_end_ns_, span.start_ns + span.duration_ns);
  }
  // Of a phase in which another one has ended, what came after that is what lasts.
  OpenPhase phase{Stage::kOther, std::max(followed.open.front().start_ns, newest_end_ns_)};
  for (size_t i = 1; i < followed.open.size(); ++i) {
    const std::optional<Stage> stage = model::StageOf(name_of(followed.open[i].name));
    if (stage) phase = {*stage, std::max(followed.open[i].start_ns, newest_end_ns_)};
  }
  open_phase_ = phase;
}

bool RankMeter::hides_communication() const {
  const auto counter = values_.find(model::kHidesCommunicationCounter);
  return counter != values_.end() && counter->second > 0;
}

void RankMeter::TakeCounter(const std::string& name, double value) {
  if (std::find(std::begin(kAmounts), std::end(kAmounts), name) != std::end(kAmounts)) {
    if (value > 0) amounts_[name] += value;
    return;
  }
  std::string kept = ValidUtf8(name.substr(0, kMostNameBytes));
  if (kept.empty() || (values_.size() == kMostValues && !values_.contains(kept))) {
    ++left_out_count_;
    return;
  }
  values_[std::move(kept)] = value;
}

void RankMeter::TakeRequest(const FollowedRequest& event, const std::string& name) {
  if (event.kind == FollowedRequest::Kind::kBegin) {
    Forget(event.request);
    if (requests_.size() == kMostRequests) {
      ++missed_count_;
      Forget(requests_by_age_.front());
    }
    Request request;
    request.name = ValidUtf8(name.substr(0, kMostNameBytes));
    request.begin_ns = event.time_ns;
    request.age = requests_by_age_.insert(requests_by_age_.end(), event.request);
    requests_.emplace(event.request, std::move(request));
    return;
  }
  const auto found = requests_.find(event.request);
  if (found == requests_.end()) return;  // It began before we looked.
  Request& request = found->second;
  if (event.kind == FollowedRequest::Kind::kOutput) {
    const uint64_t count = std::max<uint64_t>(event.output_count, 1);
    if (!request.first_output_ns) {
      request.first_output_ns = event.time_ns;
      request.first_count = count;
    } else if (request.gaps_ns.size() < kMostGaps && gap_count_ < kMostGapsOfAll) {
      ++gap_count_;
      const int64_t gap_ns = std::max<int64_t>(event.time_ns - request.last_output_ns, 0);
      request.gaps_ns.emplace_back(gap_ns / static_cast<int64_t>(std::min<uint64_t>(count, INT32_MAX)), count);
    }
    request.last_output_ns = std::max(event.time_ns, *request.first_output_ns);
    request.output_count += std::min<uint64_t>(count, UINT64_MAX - request.output_count);
    return;
  }
  EndedRequest ended;
  ended.name = std::move(request.name);
  ended.end_ns = event.time_ns;
  ended.duration_ns = std::max<int64_t>(event.time_ns - request.begin_ns, 0);
  ended.output_count = request.output_count;
  ended.failed = event.failed;
  gap_count_ -= request.gaps_ns.size();
  ended.gaps_ns = std::exchange(request.gaps_ns, {});
  if (request.first_output_ns) {
    ended.first_output_ns = std::max<int64_t>(*request.first_output_ns - request.begin_ns, 0);
    const uint64_t later = request.output_count - request.first_count;
    if (later > 0) {
      ended.per_output_ns = (request.last_output_ns - *request.first_output_ns) /
                            static_cast<int64_t>(std::min<uint64_t>(later, INT32_MAX));
    }
  }
  ended_requests_.push_back(std::move(ended));
  Forget(event.request);
}

void RankMeter::Forget(uint64_t request) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  gap_count_ -= found->second.gaps_ns.size();
  requests_by_age_.erase(found->second.age);
  requests_.erase(found);
}

std::map<std::string, uint64_t> RankMeter::OpenRequests() const {
  std::map<std::string, uint64_t> counts;
  for (const auto& [number, request] : requests_) ++counts[request.name];
  return counts;
}

}  // namespace lockstep::agent
