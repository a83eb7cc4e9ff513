#include "node/agent/daemon/serving_objectives.h"

#include <algorithm>
#include <optional>

namespace lockstep::agent {

const MetricSpecs& ObjectiveMetricSpecs() {
  static const MetricSpecs specs = {
      {"lockstep_serving_slo_request_duration_seconds", "gauge", "job_id,model,engine",
       "What the settings ask of 99 % of requests, from begin to end."},
      {"lockstep_serving_slo_time_to_first_token_seconds", "gauge", "job_id,model,engine",
       "The same of their times to first output."},
      {"lockstep_serving_slo_inter_token_latency_seconds", "gauge", "job_id,model,engine",
       "The same of the times between outputs."},
  };
  return specs;
}

void AddServingObjectives(const ServingObjectives& objectives, std::vector<prometheus::MetricFamily>* families) {
  const struct {
    std::optional<double> seconds;
    const char* measured;
    const char* objective;
  } kinds[] = {{objectives.request_s, "lockstep_serving_request_duration_seconds",
                "lockstep_serving_slo_request_duration_seconds"},
               {objectives.first_token_s, "lockstep_serving_time_to_first_token_seconds",
                "lockstep_serving_slo_time_to_first_token_seconds"},
               {objectives.inter_token_s, "lockstep_serving_inter_token_latency_seconds",
                "lockstep_serving_slo_inter_token_latency_seconds"}};
  MetricFamilies out(ObjectiveMetricSpecs());
  for (const auto& kind : kinds) {
    const auto measured = std::find_if(families->begin(), families->end(),
                                       [&](const auto& family) { return family.name == kind.measured; });
    if (!kind.seconds || measured == families->end()) continue;
    for (const prometheus::ClientMetric& metric : measured->metric) {
      MetricLabels labels;
      for (const auto& label : metric.label) labels.emplace_back(label.name, label.value);
      out.Add(kind.objective, std::move(labels), *kind.seconds);
    }
  }
  MergeFamilies(out.Take(), families);
}

}  // namespace lockstep::agent
