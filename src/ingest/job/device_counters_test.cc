#include "ingest/job/device_counters.h"

#include <gmock/gmock.h>

#include <string>

namespace lockstep::ingest {
namespace {

model::RankTrace Trace(int32_t rank, const std::string& host, int32_t device) {
  model::RankTrace trace;
  trace.rank = {rank};
  trace.host = host;
  model::Track& track = trace.tracks.emplace_back();
  track.lane = model::Lane::kDevice;
  track.process_id = device;
  track.events.start_ns.push_back(0);
  return trace;
}

void Sample(std::optional<int32_t> device, double value, model::RankTrace* trace) {
  model::CounterSeries& series = trace->counters.emplace_back();
  series.name = "SMs Active";
  if (device) series.device = DeviceOrdinal{*device};
  series.time_ns.push_back(0);
  series.value.push_back(value);
}

std::string Placed(const model::Run& run) {
  std::string text;
  for (const model::RankTrace& trace : run.ranks) {
    text += std::to_string(trace.rank.value) + ":";
    for (const model::CounterSeries& series : trace.counters) {
      text += " " + std::to_string(static_cast<int>(series.value[0]));
    }
    text += "; ";
  }
  return text;
}

TEST(DeviceCountersTest, WhatOneRankSampledOfTheNodeGoesToWhoUsesIt) {
  model::Run run;
  run.ranks.push_back(Trace(0, "a", 0));
  run.ranks.push_back(Trace(1, "a", 1));
  run.ranks.push_back(Trace(2, "b", 0));
  Sample({}, 9, &run.ranks[0]);
  Sample(0, 10, &run.ranks[0]);
  Sample(1, 11, &run.ranks[0]);
  Sample(7, 17, &run.ranks[0]);
  Sample(0, 20, &run.ranks[2]);
  PlaceDeviceCounters(&run);
  EXPECT_EQ(Placed(run), "0: 9 10 17; 1: 11; 2: 20; ") << "nobody is known to use device 7: it stays";
}

TEST(DeviceCountersTest, OrdinalsThatSeveralRanksUseTellNothing) {
  model::Run run;
  for (const int32_t rank : {0, 1}) run.ranks.push_back(Trace(rank, "a", 0));
  Sample(0, 10, &run.ranks[0]);
  Sample(1, 11, &run.ranks[0]);
  PlaceDeviceCounters(&run);
  EXPECT_EQ(Placed(run), "0: 10 11; 1:; ");
}

}  // namespace
}  // namespace lockstep::ingest
