#include "node/agent/sensors/metric_spec.h"

#include <algorithm>
#include <iterator>

namespace lockstep::agent {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily MakeFamily(const MetricSpec& spec) {
  const std::string_view type = spec.type;
  MetricFamily family;
  family.name = spec.name;
  family.help = spec.help;
  family.type = type == "counter"     ? MetricType::Counter
                : type == "histogram" ? MetricType::Histogram
                : type == "summary"   ? MetricType::Summary
                                      : MetricType::Gauge;
  return family;
}

MetricFamily* MetricFamilies::FamilyOf(std::string_view name) {
  const auto place = places_.find(name);
  if (place != places_.end()) return &families_[place->second];
  const auto spec =
      std::find_if(specs_.begin(), specs_.end(), [&](const MetricSpec& each) { return name == each.name; });
  if (spec == specs_.end()) return nullptr;
  places_.emplace(name, families_.size());
  families_.push_back(MakeFamily(*spec));
  return &families_.back();
}

void MetricFamilies::Add(std::string_view name, MetricLabels labels, double value) {
  ClientMetric metric;
  metric.counter.value = metric.gauge.value = value;
  Add(name, std::move(labels), std::move(metric));
}

void MetricFamilies::Add(std::string_view name, MetricLabels labels, ClientMetric metric) {
  MetricFamily* const family = FamilyOf(name);
  if (family == nullptr) return;
  metric.label.clear();
  for (auto& [label, value] : labels) metric.label.push_back({std::move(label), std::move(value)});
  family->metric.push_back(std::move(metric));
}

void MergeFamilies(std::vector<MetricFamily> more, std::vector<MetricFamily>* families) {
  for (MetricFamily& family : more) {
    const auto same = std::find_if(families->begin(), families->end(),
                                   [&](const MetricFamily& each) { return each.name == family.name; });
    if (same == families->end()) {
      families->push_back(std::move(family));
    } else {
      std::move(family.metric.begin(), family.metric.end(), std::back_inserter(same->metric));
    }
  }
}

}  // namespace lockstep::agent
