#include "node/agent/engines/engine_sensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/now.h"
#include "node/agent/sensors/serving_metric_specs.h"

namespace lockstep::agent {
namespace {

constexpr auto kFindEvery = std::chrono::seconds(15);
constexpr size_t kMostEndpoints = 32;

const MetricSpecs& CollectedSpecs() {
  static const MetricSpecs specs = [] {
    MetricSpecs all = ServingMetricSpecs();
    all.insert(all.end(), EngineMetricSpecs().begin(), EngineMetricSpecs().end());
    return all;
  }();
  return specs;
}

}  // namespace

const MetricSpecs& EngineMetricSpecs() {
  static const MetricSpecs specs = {
      {"lockstep_serving_engine_up", "gauge", "job_id,engine",
       "1: an inference engine that lockstepd was told of, or has found, answered with its metrics."},
  };
  return specs;
}

EngineSensor::EngineSensor(EngineSensorOptions options) : options_(std::move(options)) {
  for (const EngineEndpoint& endpoint : options_.endpoints) watched_[endpoint.job].endpoint = endpoint;
}

void EngineSensor::FindMore() {
  const auto now = std::chrono::steady_clock::now();
  if (options_.find == nullptr || now < find_again_) return;
  find_again_ = now + kFindEvery;
  std::map<std::string, EngineEndpoint> found;
  for (const FoundEngine& engine : options_.find()) {
    EngineEndpoint endpoint;
    endpoint.kind = engine.kind;
    endpoint.url = fmt::format("http://127.0.0.1:{}/metrics", engine.port);
    endpoint.job = fmt::format("{}:{}", options_.host, engine.port);
    // What the settings name is theirs, under whatever name.
    const bool is_known = std::any_of(options_.endpoints.begin(), options_.endpoints.end(), [&](const auto& known) {
      const auto url = ParseEngineUrl(known.url);
      return known.job == endpoint.job || (url && url->is_loopback() && url->port == engine.port);
    });
    if (!is_known) found.emplace(endpoint.job, std::move(endpoint));
  }
  std::erase_if(watched_, [&](const auto& entry) {
    const bool is_set = std::any_of(options_.endpoints.begin(), options_.endpoints.end(),
                                    [&](const auto& known) { return known.job == entry.first; });
    return !is_set && !found.contains(entry.first);
  });
  for (auto& [job, endpoint] : found) {
    if (watched_.contains(job) || watched_.size() < kMostEndpoints) watched_[job].endpoint = std::move(endpoint);
  }
}

void EngineSensor::Take(const Result<std::string>& answer, Watched* watched) {
  Result<EngineReading> reading =
      answer ? ReadEngineMetrics(*answer, watched->endpoint.kind) : Result<EngineReading>(answer.error());
  const std::string trouble = reading ? "" : reading.error().message;
  if (reading) {
    watched->meter.Take(std::move(*reading), SteadyNow());
  } else {
    watched->meter.Miss();
  }
  if (trouble != watched->trouble && !trouble.empty() && options_.log) {
    options_.log(fmt::format("engine at {}: {}", watched->endpoint.url, trouble));
  }
  watched->trouble = trouble;
}

Result<Reading> EngineSensor::Look() {
  FindMore();
  std::vector<EngineClient::Ask> asks;
  std::vector<Watched*> asked;
  for (auto& [job, watched] : watched_) {
    asks.push_back({watched.endpoint.url, watched.endpoint.token});
    asked.push_back(&watched);
  }
  client_.Fetch(asks, options_.timeout,
                [&](size_t ask_idx, const Result<std::string>& answer) { Take(answer, asked[ask_idx]); });
  MetricFamilies out(CollectedSpecs());
  for (const auto& [job, watched] : watched_) {
    const char* const engine = EngineKindName(watched.endpoint.kind);
    out.Add("lockstep_serving_engine_up", {{"job_id", job}, {"engine", engine}}, watched.meter.answered() ? 1 : 0);
    watched.meter.Collect(job, engine, watched.endpoint.model, &out);
  }
  return Reading{!watched_.empty(), out.Take()};
}

}  // namespace lockstep::agent
