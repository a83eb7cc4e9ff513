#include "node/agent/gpu/gpu_metrics.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace lockstep::agent {
namespace {

using namespace std::chrono_literals;

const GpuMetrics::TimePoint kStart{};

GpuReading Read(std::optional<uint64_t> reasons, std::vector<std::pair<uint32_t, uint64_t>> xids = {}) {
  GpuReading reading;
  reading.listed_count = 1;
  reading.devices = {GpuDevice{.gpu = 0, .reasons = reasons}};
  reading.xids = std::move(xids);
  return reading;
}

/// Value of the only series with this label; nullopt: absent.
std::optional<double> ValueOf(const GpuMetrics& metrics, const std::string& name, const std::string& value) {
  for (const auto& family : metrics.Collect({})) {
    if (family.name != name) continue;
    for (const auto& metric : family.metric) {
      const bool is_it = std::any_of(metric.label.begin(), metric.label.end(),
                                     [&](const auto& label) { return label.value == value; });
      if (is_it) return family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
    }
  }
  return std::nullopt;
}

TEST(GpuMetricsTest, EveryMetricHasASpecOfItsOwn) {
  std::set<std::string> names;
  for (size_t i = 0; i < kGpuMetricCount; ++i) names.insert(GpuMetricName(static_cast<GpuMetric>(i)));
  EXPECT_EQ(names.size(), kGpuMetricCount);
  for (const std::string& name : names) {
    EXPECT_TRUE(std::any_of(GpuMetricSpecs().begin(), GpuMetricSpecs().end(), [&](const MetricSpec& spec) {
      return name == spec.name;
    })) << name;
  }
}

TEST(GpuMetricsTest, AReasonIsCountedWhileItHoldsAndNotOverAGap) {
  const std::string name = "lockstep_gpu_throttle_seconds_total";
  GpuMetrics metrics("n1", {});
  metrics.Take(Read(0x40), kStart);
  EXPECT_EQ(ValueOf(metrics, name, "hw_thermal"), 0);
  metrics.Take(Read(0x40), kStart + 2s);
  metrics.Take(Read(0), kStart + 3s);
  EXPECT_EQ(ValueOf(metrics, name, "hw_thermal"), 2);
  EXPECT_EQ(ValueOf(metrics, name, "hw_power_brake"), 0);
  metrics.Take(Read(0x40), kStart + 300s);  // Nobody looked in between.
  EXPECT_EQ(ValueOf(metrics, name, "hw_thermal"), 2);
  metrics.Take(Read(std::nullopt), kStart + 301s);
  EXPECT_EQ(ValueOf(metrics, name, "hw_thermal"), std::nullopt);
  metrics.Take(Read(0x40), kStart + 302s);
  metrics.Take(Read(0x40), kStart + 303s);
  EXPECT_EQ(ValueOf(metrics, name, "hw_thermal"), 3);
}

TEST(GpuMetricsTest, CodesOfEventsAreBounded) {
  GpuMetrics metrics("n1", {});
  std::vector<std::pair<uint32_t, uint64_t>> xids;
  for (uint64_t code = 1000; code < 2000; ++code) xids.emplace_back(0, code);
  metrics.Take(Read(0, xids), kStart);
  const auto families = metrics.Collect({});
  const auto events = std::find_if(families.begin(), families.end(),
                                   [](const auto& family) { return family.name == "lockstep_gpu_xid_events_total"; });
  ASSERT_NE(events, families.end());
  EXPECT_LE(events->metric.size(), 50u);
  double sum = 0;
  for (const auto& metric : events->metric) sum += metric.counter.value;
  EXPECT_EQ(sum, 1000);
  EXPECT_GT(ValueOf(metrics, "lockstep_gpu_xid_events_total", "other"), 900);
}

TEST(GpuMetricsTest, ADriverThatIsGoneShowsNoneOfTheGpusThatWereThere) {
  for (const auto state : {GpuReading::State::kAbsent, GpuReading::State::kFailed}) {
    GpuMetrics metrics("n1", {});
    metrics.Take({.state = state}, kStart);  // A node without GPUs.
    EXPECT_EQ(ValueOf(metrics, "lockstep_gpus_visible", "n1"), std::nullopt);
    metrics.Take(Read(0, {{0, 79}}), kStart + 1s);
    metrics.Take({.state = state}, kStart + 2s);
    EXPECT_EQ(ValueOf(metrics, "lockstep_gpus_visible", "n1"), 0);
    EXPECT_EQ(ValueOf(metrics, "lockstep_gpus_expected", "n1"), 1);
    EXPECT_EQ(ValueOf(metrics, "lockstep_gpu_info", "0"), std::nullopt);
    EXPECT_EQ(ValueOf(metrics, "lockstep_gpu_xid_events_total", "79"), 1);
  }
}

TEST(GpuMetricsTest, WhatIsForgottenIsAbsentAndWhatWasCountedStays) {
  GpuMetrics metrics("n1", 4);
  metrics.Take(Read(0, {{0, 79}}), kStart);
  EXPECT_EQ(ValueOf(metrics, "lockstep_gpus_visible", "n1"), 1);
  metrics.Forget();
  EXPECT_EQ(ValueOf(metrics, "lockstep_gpus_visible", "n1"), std::nullopt);
  EXPECT_EQ(ValueOf(metrics, "lockstep_gpu_info", "0"), std::nullopt);
  EXPECT_EQ(ValueOf(metrics, "lockstep_gpus_expected", "n1"), 4);
  EXPECT_EQ(ValueOf(metrics, "lockstep_gpu_xid_events_total", "79"), 1);
}

}  // namespace
}  // namespace lockstep::agent
