#include "analysis/activity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace lockstep::analysis {
namespace {

struct Event {
  int64_t start_ns;
  int64_t end_ns;
  Activity activity;
};

/// The definitions, instant by instant, over [from, to).
ActivitySums OnGrid(const std::vector<Event>& events, int64_t from_ns, int64_t to_ns) {
  ActivitySums sums;
  for (int64_t t = from_ns; t < to_ns; ++t) {
    std::array<bool, kActivityCount> active{};
    for (const Event& event : events) {
      if (event.start_ns <= t && t < event.end_ns) active[static_cast<size_t>(event.activity)] = true;
    }
    sums.compute_ns += active[0];
    sums.communication_ns += active[1];
    sums.memory_ns += active[2];
    sums.overlapped_ns += active[0] && active[1];
    sums.busy_ns += active[0] || active[1] || active[2];
    sums.exposed_memory_ns += active[2] && !active[0] && !active[1];
  }
  return sums;
}

void ExpectEqual(const ActivitySums& found, const ActivitySums& expected) {
  EXPECT_EQ(found.busy_ns, expected.busy_ns);
  EXPECT_EQ(found.compute_ns, expected.compute_ns);
  EXPECT_EQ(found.communication_ns, expected.communication_ns);
  EXPECT_EQ(found.overlapped_ns, expected.overlapped_ns);
  EXPECT_EQ(found.memory_ns, expected.memory_ns);
  EXPECT_EQ(found.exposed_memory_ns, expected.exposed_memory_ns);
}

std::vector<Event> RandomEvents(std::mt19937* random, int64_t length) {
  std::vector<Event> events(std::uniform_int_distribution<size_t>(1, 40)(*random));
  for (Event& event : events) {
    event.start_ns = std::uniform_int_distribution<int64_t>(0, length)(*random);
    event.end_ns = event.start_ns + std::uniform_int_distribution<int64_t>(0, 12)(*random);
    event.activity = static_cast<Activity>(std::uniform_int_distribution<int>(0, 2)(*random));
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.start_ns < b.start_ns; });
  return events;
}

TEST(ActivitySweepTest, AgreesWithAOneNanosecondGrid) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Event> events = RandomEvents(&random, 100);
    ActivitySweep sweep;
    for (const Event& event : events) sweep.Add(event.start_ns, event.end_ns, event.activity);
    sweep.Finish();
    ExpectEqual(sweep.Take(), OnGrid(events, 0, 200));
  }
}

TEST(ActivitySweepTest, WindowsAgreeWithTheGridAndAddUpToTheWhole) {
  std::mt19937 random(8);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Event> events = RandomEvents(&random, 100);
    const int64_t border = std::uniform_int_distribution<int64_t>(0, 110)(random);
    ActivitySweep sweep;
    ActivitySums before;
    bool crossed = false;
    const auto cross = [&] {
      sweep.Advance(border);
      before = sweep.Take();
      crossed = true;
    };
    for (const Event& event : events) {
      if (!crossed && event.start_ns >= border) cross();
      sweep.Add(event.start_ns, event.end_ns, event.activity);
    }
    if (!crossed) cross();
    sweep.Finish();
    const ActivitySums after = sweep.Take();
    ExpectEqual(before, OnGrid(events, 0, border));
    ExpectEqual(after, OnGrid(events, border, 200));
    before += after;
    ExpectEqual(before, OnGrid(events, 0, 200));
  }
}

TEST(ActivitySweepTest, GapsAreWhereNothingIsActive) {
  std::mt19937 random(9);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Event> events = RandomEvents(&random, 300);
    std::vector<Interval> gaps;
    ActivitySweep sweep(&gaps);
    int64_t last_ns = 0;
    for (const Event& event : events) {
      sweep.Add(event.start_ns, event.end_ns, event.activity);
      last_ns = std::max(last_ns, event.end_ns);
    }
    sweep.Finish();
    const int64_t busy_ns = sweep.Take().busy_ns;
    int64_t idle_ns = 0;
    int64_t previous_end_ns = -1;
    for (const Interval& gap : gaps) {
      EXPECT_LT(gap.start_ns, gap.end_ns);
      EXPECT_GT(gap.start_ns, previous_end_ns) << "gaps that touch are one gap";
      previous_end_ns = gap.end_ns;
      idle_ns += gap.end_ns - gap.start_ns;
      EXPECT_EQ(OnGrid(events, gap.start_ns, gap.end_ns).busy_ns, 0);
    }
    EXPECT_EQ(busy_ns + idle_ns, last_ns - events.front().start_ns);
  }
}

TEST(ActivitySweepTest, TouchingIntervalsDoNotOverlap) {
  ActivitySweep sweep;
  sweep.Add(0, 10, Activity::kCommunication);
  sweep.Add(10, 20, Activity::kCompute);
  sweep.Finish();
  const ActivitySums sums = sweep.Take();
  EXPECT_EQ(sums.overlapped_ns, 0);
  EXPECT_EQ(sums.busy_ns, 20);
}

TEST(ActivitySweepTest, AnEventOfNoDurationTakesNoTime) {
  std::vector<Interval> gaps;
  ActivitySweep sweep(&gaps);
  sweep.Add(0, 10, Activity::kCompute);
  sweep.Add(15, 15, Activity::kMemory);
  sweep.Add(20, 30, Activity::kCompute);
  sweep.Finish();
  EXPECT_EQ(sweep.Take().busy_ns, 20);
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].start_ns, 10);
  EXPECT_EQ(gaps[0].end_ns, 20);
}

}  // namespace
}  // namespace lockstep::analysis
