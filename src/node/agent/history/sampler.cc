#include "node/agent/history/sampler.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace lockstep::agent {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

constexpr size_t kMostThings = 8192;

/// Which labels say what a thing of a kind is; a metric without one of them is of nothing that is kept.
const std::vector<const char*>& KeysOf(HistoryKind kind) {
  static const std::array<std::vector<const char*>, kHistoryKinds> keys = {
      std::vector<const char*>{"job_id", "rank"},
      {"gpu"},
      {"job_id", "model", "engine"},
      {"job_id"},
  };
  return keys.at(static_cast<size_t>(kind));
}

/// Labels that are kept besides, from whichever metric has them.
const std::vector<const char*>& MoreLabelsOf(HistoryKind kind) {
  static const std::array<std::vector<const char*>, kHistoryKinds> labels = {
      std::vector<const char*>{"host", "pid", "local_rank", "user", "device"},
      {"host", "uuid", "model"},
      {},
      {},
  };
  return labels.at(static_cast<size_t>(kind));
}

constexpr std::array<const char*, kHistoryKinds> kInfo = {"lockstep_rank_info", "lockstep_gpu_info", "", ""};

struct Wanted {
  HistoryKind kind;
  size_t figure_idx;
};

const std::unordered_map<std::string_view, std::vector<Wanted>>& WantedMetrics() {
  static const auto wanted = [] {
    std::unordered_map<std::string_view, std::vector<Wanted>> made;
    for (size_t kind = 0; kind < kHistoryKinds; ++kind) {
      const auto& figures = FiguresOf(static_cast<HistoryKind>(kind));
      for (size_t i = 0; i < figures.size(); ++i) {
        made[figures[i].metric].push_back({static_cast<HistoryKind>(kind), i});
      }
    }
    return made;
  }();
  return wanted;
}

std::optional<double> ValueFor(const Figure& figure, const MetricFamily& family, const ClientMetric& metric) {
  if (figure.label != nullptr) {
    const std::string* value = FindLabel(metric, figure.label);
    if (value == nullptr || *value != figure.value) return std::nullopt;
  }
  double value = 0;
  if (figure.quantile > 0) {
    const auto& quantiles = metric.summary.quantile;
    const auto found = std::find_if(quantiles.begin(), quantiles.end(),
                                    [&](const auto& each) { return each.quantile == figure.quantile; });
    if (found == quantiles.end()) return std::nullopt;
    value = found->value;
  } else {
    value = SampleValue(family, metric);
  }
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

double SampleValue(const MetricFamily& family, const ClientMetric& metric) {
  switch (family.type) {
    case prometheus::MetricType::Counter: return metric.counter.value;
    case prometheus::MetricType::Gauge: return metric.gauge.value;
    default: return metric.untyped.value;
  }
}

const std::string* FindLabel(const ClientMetric& metric, std::string_view name) {
  for (const ClientMetric::Label& label : metric.label) {
    if (label.name == name) return &label.value;
  }
  return nullptr;
}

HistorySampler::Thing* HistorySampler::ThingOf(HistoryKind kind, const ClientMetric& metric) {
  // A part of a partitioned GPU is not the GPU.
  if (kind == HistoryKind::kGpu) {
    const std::string* part = FindLabel(metric, "gi");
    if (part != nullptr && !part->empty()) return nullptr;
  }
  std::string key;
  for (const char* name : KeysOf(kind)) {
    const std::string* value = FindLabel(metric, name);
    if (value == nullptr || value->size() > kMostLabelBytes) return nullptr;
    key.append(*value).push_back('\0');
  }
  Things& things = things_.at(static_cast<size_t>(kind));
  const auto found = things.find(key);
  if (found != things.end()) return &found->second;
  if (things.size() == kMostThings) return nullptr;
  Thing& made = things[std::move(key)];
  for (const char* name : KeysOf(kind)) made.labels[name] = *FindLabel(metric, name);
  return &made;
}

void HistorySampler::Take(const MetricFamily& family) {
  for (size_t kind = 0; kind < kHistoryKinds; ++kind) {
    if (family.name != kInfo.at(kind)) continue;
    for (const ClientMetric& metric : family.metric) {
      Thing* thing = ThingOf(static_cast<HistoryKind>(kind), metric);
      if (thing == nullptr) continue;
      thing->is_named = true;
      for (const char* name : MoreLabelsOf(static_cast<HistoryKind>(kind))) {
        const std::string* value = FindLabel(metric, name);
        if (value != nullptr && !value->empty()) thing->labels[name] = value->substr(0, kMostLabelBytes);
      }
    }
    return;
  }
  const auto wanted = WantedMetrics().find(family.name);
  if (wanted == WantedMetrics().end()) return;
  for (const ClientMetric& metric : family.metric) {
    for (const Wanted& each : wanted->second) {
      const Figure& figure = FiguresOf(each.kind)[each.figure_idx];
      const std::optional<double> value = ValueFor(figure, family, metric);
      Thing* thing = value ? ThingOf(each.kind, metric) : nullptr;
      if (thing == nullptr) continue;
      std::optional<double>& held = thing->values.at(each.figure_idx);
      held = !held ? *value : figure.is_most ? std::max(*held, *value) : *held + *value;
    }
  }
}

std::vector<HistorySample> HistorySampler::Finish(size_t most) {
  std::vector<HistorySample> samples;
  std::map<std::string, HistoryLabels, std::less<>> named_ranks;
  for (size_t kind = 0; kind < kHistoryKinds; ++kind) {
    const auto& figures = FiguresOf(static_cast<HistoryKind>(kind));
    for (auto& [key, thing] : things_.at(kind)) {
      if (samples.size() == most) break;
      if (static_cast<HistoryKind>(kind) == HistoryKind::kRank) {
        if (!thing.is_named) {
          const auto before = named_ranks_.find(key);
          if (before == named_ranks_.end()) continue;
          thing.labels = before->second;
        }
        named_ranks.emplace(key, thing.labels);
      }
      HistorySample sample{static_cast<HistoryKind>(kind), std::move(thing.labels), {}};
      for (size_t i = 0; i < figures.size(); ++i) {
        if (thing.values.at(i)) sample.values.at(i) = ToStored(figures[i], *thing.values.at(i));
      }
      samples.push_back(std::move(sample));
    }
    things_.at(kind).clear();
  }
  named_ranks_ = std::move(named_ranks);
  return samples;
}

}  // namespace lockstep::agent
