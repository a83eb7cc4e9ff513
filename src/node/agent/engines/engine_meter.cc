#include "node/agent/engines/engine_meter.h"

#include <prometheus/client_metric.h>

#include <algorithm>
#include <cmath>

namespace lockstep::agent {
namespace {

constexpr int64_t kRecentNs = 60'000'000'000;
constexpr double kQuantiles[] = {0.5, 0.9, 0.95, 0.99};

/// Histograms whose last minute is shown, and under which name.
constexpr std::pair<std::string_view, const char*> kRecent[] = {
    {"lockstep_serving_request_duration_seconds", "lockstep_serving_recent_request_duration_seconds"},
    {"lockstep_serving_time_to_first_token_seconds", "lockstep_serving_recent_time_to_first_token_seconds"},
    {"lockstep_serving_inter_token_latency_seconds", "lockstep_serving_recent_inter_token_latency_seconds"},
};

bool IsContinuedBy(const EngineHistogram& before, const EngineHistogram& after) {
  return before.sum <= after.sum &&
         std::equal(before.buckets.begin(), before.buckets.end(), after.buckets.begin(), after.buckets.end(),
                    [](const auto& a, const auto& b) { return a.first == b.first && a.second <= b.second; });
}

prometheus::ClientMetric HistogramMetric(const EngineHistogram& histogram) {
  prometheus::ClientMetric metric;
  metric.histogram.sample_count = histogram.buckets.back().second;
  metric.histogram.sample_sum = histogram.sum;
  for (const auto& [bound, count] : histogram.buckets) {
    prometheus::ClientMetric::Bucket bucket;
    bucket.upper_bound = bound;
    bucket.cumulative_count = count;
    metric.histogram.bucket.push_back(bucket);
  }
  return metric;
}

prometheus::ClientMetric SummaryMetric(const RecentHistogram& recent) {
  prometheus::ClientMetric metric;
  // Quantiles are of the last minute; count and sum rise, as rate() wants them.
  metric.summary.sample_count = recent.all_count();
  metric.summary.sample_sum = recent.all_sum();
  for (const double share : kQuantiles) {
    if (const auto value = recent.Quantile(share)) metric.summary.quantile.push_back({share, *value});
  }
  return metric;
}

}  // namespace

void RecentHistogram::Take(const EngineHistogram& histogram, int64_t now_ns) {
  if (!stands_.empty() && !IsContinuedBy(stands_.back().histogram, histogram)) stands_.clear();
  stands_.push_back({now_ns, histogram});
  while (stands_.size() > 1 && stands_[1].at_ns <= now_ns - kRecentNs) stands_.pop_front();
}

uint64_t RecentHistogram::count() const {
  if (stands_.empty()) return 0;
  return stands_.back().histogram.buckets.back().second - stands_.front().histogram.buckets.back().second;
}

double RecentHistogram::sum() const {
  return stands_.empty() ? 0 : stands_.back().histogram.sum - stands_.front().histogram.sum;
}

std::optional<double> RecentHistogram::Quantile(double share) const {
  const uint64_t all = count();
  if (all == 0 || stands_.back().histogram.buckets.size() == 1) return std::nullopt;
  const auto& first = stands_.front().histogram.buckets;
  const auto& last = stands_.back().histogram.buckets;
  const double place = share * static_cast<double>(all);
  double below = 0;
  double from = 0;
  for (size_t i = 0; i < last.size(); ++i) {
    // Up to one bound after another; differences of counts that each rise need not.
    const double up_to = std::max(below, static_cast<double>(last[i].second) - static_cast<double>(first[i].second));
    const double bound = last[i].first;
    if (up_to >= place && up_to > below) {
      if (std::isinf(bound)) return from;
      if (i == 0 && bound <= 0) return bound;
      return from + (bound - from) * (place - below) / (up_to - below);
    }
    below = up_to;
    if (!std::isinf(bound)) from = bound;
  }
  return from;
}

void EngineMeter::Take(EngineReading reading, int64_t now_ns) {
  std::erase_if(recent_, [&](const auto& entry) {
    return std::none_of(reading.models.begin(), reading.models.end(), [&](const EngineModel& model) {
      return model.model == entry.first.first && model.histograms.contains(entry.first.second);
    });
  });
  for (const EngineModel& model : reading.models) {
    for (const auto& [name, unused] : kRecent) {
      const auto histogram = model.histograms.find(name);
      if (histogram != model.histograms.end()) recent_[{model.model, name}].Take(histogram->second, now_ns);
    }
  }
  reading_ = std::move(reading);
}

void EngineMeter::Collect(const std::string& job, const char* engine, const std::string& model,
                          MetricFamilies* out) const {
  if (!reading_) return;
  for (const EngineModel& each : reading_->models) {
    // One name for several models would make series twice.
    const bool is_named = !model.empty() && reading_->models.size() == 1;
    const std::string& said = is_named ? model : each.model;
    const MetricLabels labels = {{"job_id", job}, {"model", said}, {"engine", engine}};
    for (const auto& [name, value] : each.values) out->Add(name, labels, value);
    for (const auto& [name, histogram] : each.histograms) out->Add(name, labels, HistogramMetric(histogram));
    for (const auto& [name, recent_name] : kRecent) {
      const auto recent = recent_.find({each.model, name});
      if (recent != recent_.end() && recent->second.count() > 0) {
        out->Add(recent_name, labels, SummaryMetric(recent->second));
      }
    }
  }
}

}  // namespace lockstep::agent
