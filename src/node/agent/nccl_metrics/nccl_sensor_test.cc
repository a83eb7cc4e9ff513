#include "node/agent/nccl_metrics/nccl_sensor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::agent {
namespace {

using ingest::NcclRingPulse;

/// Of a process that has done `completed` all_reduces on each group.
NcclRingPulse PulseOf(const std::vector<std::string>& groups, uint64_t completed) {
  NcclRingPulse pulse;
  pulse.interface_version = 6;
  pulse.totals.emplace();
  for (const std::string& group : groups) {
    ingest::NcclRingTotal& total = pulse.totals->emplace_back();
    total.communicator = pulse.communicators.size();
    total.function = "AllReduce";
    total.completed = completed;
    ingest::NcclRingCommunicator& communicator = pulse.communicators.emplace_back();
    communicator.name = group;
    communicator.rank_count = 2;
    pulse.oldest_begin_ns.emplace_back();
  }
  return pulse;
}

std::map<std::string, double> Calls(const std::vector<prometheus::MetricFamily>& families) {
  std::map<std::string, double> calls;
  for (const prometheus::MetricFamily& family : families) {
    if (family.name != "lockstep_collective_calls_total") continue;
    for (const prometheus::ClientMetric& metric : family.metric) {
      std::string key;
      for (const auto& label : metric.label)
        key += fmt::format("{}{}={}", key.empty() ? "" : ",", label.name, label.value);
      EXPECT_TRUE(calls.emplace(key, metric.counter.value).second) << key << " is there twice";
    }
  }
  return calls;
}

TEST(CollectiveSeriesTest, CommunicatorsOfOneNameAndProcessesOfOneRankAreOneSeries) {
  CollectiveSeries series;
  series.Add("j", "3", PulseOf({"dp", "dp"}, 10), 0);
  series.Add("j", "3", PulseOf({"dp"}, 1), 0);
  EXPECT_EQ(Calls(series.Take()), (std::map<std::string, double>{{"job_id=j,rank=3,pg=dp,op=all_reduce", 21}}));
  EXPECT_TRUE(series.Take().empty()) << "nothing was added since";
}

TEST(CollectiveSeriesTest, NamesAreFewAndShortAndStayWhatTheyWere) {
  std::vector<std::string> groups;
  for (int i = 0; i < 400; ++i) groups.push_back(fmt::format("group {:03}", i));
  groups.emplace_back(500, 'x');
  CollectiveSeries series;
  series.Add("j", "0", PulseOf({"last"}, 1), 0);
  for (int scrape = 0; scrape < 2; ++scrape) {
    if (scrape > 0) series.Add("j", "0", PulseOf({"last"}, 1), 0);
    series.Add("j", "0", PulseOf(groups, 1), 0);
    const auto calls = Calls(series.Take());
    EXPECT_LE(calls.size(), 258u);
    EXPECT_EQ(calls.count("job_id=j,rank=0,pg=last,op=all_reduce"), 1u) << "it came first";
    double sum = 0;
    for (const auto& [key, value] : calls) sum += value;
    EXPECT_EQ(sum, 402) << "what has no name of its own is counted under other";
  }
  CollectiveSeries other;
  other.Add("j", "0", PulseOf({std::string(500, 'x'), std::string(63, 'y') + "\xC3\xA9"}, 1), 0);
  for (const prometheus::MetricFamily& family : other.Take()) {
    for (const prometheus::ClientMetric& metric : family.metric) {
      for (const auto& label : metric.label) EXPECT_LE(label.value.size(), 64u);
    }
  }
}

TEST(CollectiveSeriesTest, TheOldestUnderWayCounts) {
  NcclRingPulse pulse = PulseOf({"dp", "dp"}, 1);
  pulse.oldest_begin_ns[0] = 4'000'000'000;
  pulse.oldest_begin_ns[1] = 1'000'000'000;
  CollectiveSeries series;
  series.Add("j", "pid-7", pulse, 9'000'000'000);
  const std::vector<prometheus::MetricFamily> families = series.Take();
  const auto oldest = std::find_if(families.begin(), families.end(), [](const prometheus::MetricFamily& family) {
    return family.name == "lockstep_collective_oldest_inflight_seconds";
  });
  ASSERT_NE(oldest, families.end());
  ASSERT_EQ(oldest->metric.size(), 1u);
  EXPECT_EQ(oldest->metric[0].gauge.value, 8);
}

TEST(CollectiveSeriesTest, WhatIsNotKnownIsAbsent) {
  NcclRingPulse pulse = PulseOf({"dp"}, 1);
  pulse.interface_version = 2;
  pulse.communicators[0].rank_count.reset();
  (*pulse.totals)[0].function = "AllGather";
  pulse.knows_oldest = false;
  CollectiveSeries series;
  series.Add("j", "0", pulse, 0);
  for (const prometheus::MetricFamily& family : series.Take()) {
    EXPECT_THAT(family.name, testing::AnyOf("lockstep_collective_enqueued_total", "lockstep_collective_completed_total",
                                            "lockstep_collective_calls_total", "lockstep_collective_seconds_total"));
  }
}

}  // namespace
}  // namespace lockstep::agent
