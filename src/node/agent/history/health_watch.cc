#include "node/agent/history/health_watch.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/nanoseconds.h"
#include "node/agent/history/frame.h"
#include "node/agent/history/sampler.h"

namespace lockstep::agent {
namespace {

constexpr size_t kMostSeen = 16'384;
constexpr size_t kMostEvents = 64;  // Of one look.

/// What of a metric is an event.
struct Rule {
  enum class How : uint8_t {
    kGrows,      ///< A counter: by how much.
    kIsSet,      ///< A gauge: from 0 to something.
    kIsCleared,  ///< And back.
  };
  const char* metric;
  const char* kind;
  How how;
  /// It is reported again only after this time without growth.
  int64_t quiet_ns = 0;
  /// Its first sight says that it happened: such a series is not there before.
  bool begins_at_zero = false;
  const char* label = nullptr;  ///< Only where this
  const char* value = nullptr;  ///< begins with this.
};

constexpr Rule kRules[] = {
    {"lockstep_gpu_xid_events_total", "gpu_xid", Rule::How::kGrows, 0, true},
    {"lockstep_gpu_ecc_errors_total", "gpu_ecc_uncorrected", Rule::How::kGrows, 0, false, "error", "uncorrected"},
    {"lockstep_gpu_row_remap_failure", "gpu_row_remap_failure", Rule::How::kIsSet},
    {"lockstep_gpu_throttle_seconds_total", "gpu_throttled", Rule::How::kGrows, 60 * kSecondNs, false, "reason",
     "thermal"},
    {"lockstep_gpu_throttle_seconds_total", "gpu_throttled", Rule::How::kGrows, 60 * kSecondNs, false, "reason",
     "hw_thermal"},
    {"lockstep_gpu_nvlink_errors_total", "nvlink_errors", Rule::How::kGrows, 60 * kSecondNs},
    {"lockstep_gpu_unresponsive", "gpu_unresponsive", Rule::How::kIsSet},
    {"lockstep_gpu_unresponsive", "gpu_responsive", Rule::How::kIsCleared},
    {"lockstep_ib_port_active", "ib_link_up", Rule::How::kIsSet},
    {"lockstep_ib_port_active", "ib_link_down", Rule::How::kIsCleared},
    {"lockstep_ib_port_errors_total", "ib_errors", Rule::How::kGrows, 60 * kSecondNs},
    {"lockstep_torch_ooms_total", "torch_oom", Rule::How::kGrows},
    {"lockstep_collector_success", "collector_works", Rule::How::kIsSet},
    {"lockstep_collector_success", "collector_fails", Rule::How::kIsCleared},
};

HistoryLabels LabelsOf(const prometheus::ClientMetric& metric) {
  HistoryLabels labels;
  for (const auto& label : metric.label) labels[label.name] = label.value.substr(0, kMostLabelBytes);
  return labels;
}

}  // namespace

void HealthWatch::Tell(const char* kind, HistoryLabels labels, double count) {
  if (events_.size() < kMostEvents) events_.push_back({now_unix_ns_, kind, std::move(labels), count});
}

void HealthWatch::Take(const prometheus::MetricFamily& family) {
  for (const Rule& rule : kRules) {
    if (family.name != rule.metric) continue;
    for (const prometheus::ClientMetric& metric : family.metric) {
      if (rule.label != nullptr) {
        const std::string* value = FindLabel(metric, rule.label);
        if (value == nullptr || *value != rule.value) continue;
      }
      const double now = SampleValue(family, metric);
      HistoryLabels labels = LabelsOf(metric);
      std::string key = std::string(rule.kind) + FrameKey(HistoryKind::kGpu, labels);
      if (seen_.size() == kMostSeen && !seen_.contains(key)) continue;
      const auto [place, is_new] = seen_.try_emplace(std::move(key));
      Seen& seen = place->second;
      const double before = is_new && !(rule.begins_at_zero && has_looked_) ? now : seen.value;
      seen.value = now;
      seen.is_there = true;
      const bool happened = rule.how == Rule::How::kGrows   ? now > before
                            : rule.how == Rule::How::kIsSet ? now > 0 && before <= 0
                                                            : now <= 0 && before > 0;
      if (!happened) continue;
      const bool goes_on = rule.quiet_ns > 0 && now_unix_ns_ - seen.told_unix_ns < rule.quiet_ns;
      seen.told_unix_ns = now_unix_ns_;
      if (!goes_on) Tell(rule.kind, std::move(labels), rule.how == Rule::How::kGrows ? now - before : 1);
    }
  }
}

std::vector<control::HistoryEvent> HealthWatch::Finish(const std::vector<HistorySample>& samples) {
  std::map<std::string, HistoryLabels> ranks;
  for (const HistorySample& sample : samples) {
    if (sample.kind != HistoryKind::kRank) continue;
    const auto pid = sample.labels.find("pid");
    if (pid == sample.labels.end()) continue;
    HistoryLabels labels;
    for (const char* name : {"job_id", "rank", "pid"}) {
      const auto found = sample.labels.find(name);
      if (found != sample.labels.end()) labels[name] = found->second;
    }
    ranks.emplace(FrameKey(HistoryKind::kRank, labels), std::move(labels));
  }
  if (has_looked_) {
    for (const auto& [key, labels] : ranks) {
      if (!ranks_.contains(key)) Tell("rank_started", labels, 1);
    }
    for (const auto& [key, labels] : ranks_) {
      if (!ranks.contains(key)) Tell("rank_ended", labels, 1);
    }
  }
  ranks_ = std::move(ranks);
  // A series that is missing only for a moment (a sensor that hangs) is remembered for a while, if there is room.
  if (seen_.size() == kMostSeen) std::erase_if(seen_, [](const auto& entry) { return !entry.second.is_there; });
  for (auto& [key, seen] : seen_) seen.is_there = false;
  has_looked_ = true;
  return std::exchange(events_, {});
}

}  // namespace lockstep::agent
