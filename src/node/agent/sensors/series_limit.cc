#include "node/agent/sensors/series_limit.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "base/utf8.h"

namespace lockstep::agent {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

constexpr size_t kMostLabelBytes = 256;

// Jobs make up names, and with them series; what the node itself has is bounded, and most alerts are about it.
int PlaceOf(const MetricFamily& family) {
  const bool is_of_jobs = std::any_of(family.metric.begin(), family.metric.end(), [](const ClientMetric& metric) {
    return std::any_of(metric.label.begin(), metric.label.end(),
                       [](const ClientMetric::Label& label) { return label.name == "job_id"; });
  });
  const std::string_view name = family.name;
  if (!is_of_jobs) return 0;
  if (name == "lockstep_user_value") return 4;
  if (name.starts_with("lockstep_collective_") || name.starts_with("lockstep_log_")) return 3;
  return name.starts_with("lockstep_serving_") ? 2 : 1;
}

uint64_t LinesOf(const MetricFamily& family, const ClientMetric& metric) {
  if (family.type == prometheus::MetricType::Histogram) return metric.histogram.bucket.size() + 2;
  if (family.type == prometheus::MetricType::Summary) return metric.summary.quantile.size() + 2;
  return 1;
}

bool HasGoodLabels(const ClientMetric& metric) {
  return std::all_of(metric.label.begin(), metric.label.end(), [](const ClientMetric::Label& label) {
    return label.value.size() <= kMostLabelBytes && ValidUtf8(label.value) == label.value;
  });
}

}  // namespace

SeriesDrops LimitSeries(const SeriesLimits& limits, std::vector<MetricFamily>* families) {
  std::vector<int> places;
  for (const MetricFamily& family : *families) places.push_back(PlaceOf(family));
  std::vector<size_t> order(families->size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return places[a] < places[b]; });
  SeriesDrops drops;
  std::map<std::pair<std::string, std::string>, uint64_t> of_ranks;  // With an empty rank: of the job.
  uint64_t of_node = 0;
  for (const size_t place : order) {
    MetricFamily& family = (*families)[place];
    std::erase_if(family.metric, [&](const ClientMetric& metric) {
      const uint64_t lines = LinesOf(family, metric);
      if (!HasGoodLabels(metric)) {
        drops.label += lines;
        return true;
      }
      std::pair<std::string, std::string> rank;
      for (const auto& label : metric.label) {
        if (label.name == "job_id") rank.first = label.value;
        if (label.name == "rank") rank.second = label.value;
      }
      const bool is_of_rank = !rank.second.empty();
      uint64_t* const held = is_of_rank || !rank.first.empty() ? &of_ranks[rank] : nullptr;
      if (held != nullptr && *held + lines > (is_of_rank ? limits.of_rank : limits.of_job)) {
        (is_of_rank ? drops.rank : drops.job) += lines;
        return true;
      }
      if (of_node + lines > limits.of_node) {
        drops.node += lines;
        return true;
      }
      if (held != nullptr) *held += lines;
      of_node += lines;
      return false;
    });
  }
  std::erase_if(*families, [](const MetricFamily& family) { return family.metric.empty(); });
  return drops;
}

}  // namespace lockstep::agent
