#include "analysis/hang/arrival.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/hang/job_for_test.h"

namespace lockstep::hang {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

/// Four ranks that make a call every 100 ms, those in `late_ms` later than the others by so much each time.
void RunRounds(JobForTest& job, uint32_t world, int rounds, const std::map<int32_t, int64_t>& late_ms) {
  int64_t let_go_ms = 0;
  for (int round = 0; round < rounds; ++round) {
    int64_t last_ms = 0;
    for (int32_t rank = 0; rank < 4; ++rank) {
      const auto late = late_ms.find(rank);
      const int64_t created_ms = let_go_ms + 100 + (late == late_ms.end() ? 0 : late->second);
      job.Call(rank, world, {.created_ms = created_ms});
      last_ms = std::max(last_ms, created_ms);
    }
    let_go_ms = last_ms;
  }
}

TEST(ArrivalTest, WhoIsLateInEachRoundIsTheStraggler) {
  JobForTest job(4);
  RunRounds(job, job.World(), 10, {{2, 60}});
  const JobView view = job.View();
  const ArrivalTable table = MeasureArrival(view);
  EXPECT_THAT(table.stragglers, ElementsAre(2));
  EXPECT_EQ(table.ranks[2].calls, 10);
  EXPECT_EQ(table.ranks[2].late_calls, 9) << "of the first call nothing tells when its work began";
  EXPECT_EQ(table.ranks[2].own_delay_ns, 9 * 60 * kMillisecondNs);
  EXPECT_EQ(table.ranks[2].lateness_ns, 10 * 60 * kMillisecondNs);
  EXPECT_EQ(table.ranks[0].lateness_ns, 0);
  EXPECT_EQ(table.longest_gap_ns, 160 * kMillisecondNs);
}

TEST(ArrivalTest, RanksThatComeTogetherHaveNoStraggler) {
  JobForTest job(4);
  RunRounds(job, job.World(), 10, {});
  const JobView view = job.View();
  const ArrivalTable table = MeasureArrival(view);
  EXPECT_THAT(table.stragglers, IsEmpty());
  EXPECT_THAT(table.ranks, Each(Field(&Arrival::own_delay_ns, 0)));
  EXPECT_EQ(table.span_ns, 900 * kMillisecondNs);
}

TEST(ArrivalTest, OneLateCallMakesNoStraggler) {
  JobForTest job(4);
  const uint32_t world = job.World();
  RunRounds(job, world, 5, {});
  for (int32_t rank = 0; rank < 4; ++rank) job.Call(rank, world, {.created_ms = rank == 1 ? 900 : 600});
  const JobView view = job.View();
  const ArrivalTable table = MeasureArrival(view);
  EXPECT_EQ(table.ranks[1].late_calls, 1);
  EXPECT_THAT(table.stragglers, IsEmpty());
}

TEST(ArrivalTest, ASmallShareOfTheTimeMakesNoStraggler) {
  JobForTest job(4);
  RunRounds(job, job.World(), 100, {{2, 10}});
  const JobView view = job.View();
  const ArrivalTable table = MeasureArrival(view);
  EXPECT_GT(table.ranks[2].own_delay_ns, 50 * kMillisecondNs);
  EXPECT_LT(table.share, 0.15);
  EXPECT_THAT(table.stragglers, IsEmpty());
}

TEST(ArrivalTest, LatenessThatWasInheritedIsNotOnesOwn) {
  JobForTest job(4);
  const uint32_t left = job.Group("1", "left", {0, 1});
  const uint32_t right = job.Group("2", "right", {1, 2});
  // Rank 0 is slow; rank 1 waits for it on the left, and only therefore comes late to the right.
  for (int64_t round = 0; round < 10; ++round) {
    const int64_t begin_ms = round * 300;
    job.Call(1, left, {.created_ms = begin_ms + 10});
    job.Call(0, left, {.created_ms = begin_ms + 200});
    job.Call(1, right, {.created_ms = begin_ms + 210});
    job.Call(2, right, {.created_ms = begin_ms + 20});
  }
  const JobView view = job.View();
  const ArrivalTable table = MeasureArrival(view);
  EXPECT_GT(table.ranks[1].lateness_ns, 1000 * kMillisecondNs);
  EXPECT_EQ(table.ranks[1].own_delay_ns, 0);
  EXPECT_THAT(table.stragglers, ElementsAre(0));
}

TEST(ArrivalTest, CallsThatNotAllRecordsHoldAreNotCompared) {
  JobForTest job(4);
  const uint32_t world = job.World();
  RunRounds(job, world, 10, {{2, 60}});
  job.LoseRecord(3);
  const JobView view = job.View();
  const ArrivalTable table = MeasureArrival(view);
  EXPECT_EQ(table.ranks[2].calls, 0);
  EXPECT_THAT(table.stragglers, IsEmpty());
}

TEST(ArrivalTest, RecordsWithoutTimesTellNothing) {
  JobForTest job(4);
  RunRounds(job, job.World(), 10, {{2, 60}});
  for (int32_t rank = 0; rank < 4; ++rank) {
    for (evidence::FlightEntry& entry : job.Record(rank).entries) entry.created_unix_ns = evidence::kNotRecorded;
  }
  const JobView view = job.View();
  const ArrivalTable table = MeasureArrival(view);
  EXPECT_EQ(table.span_ns, 0);
  EXPECT_EQ(table.longest_gap_ns, 0);
  EXPECT_THAT(table.stragglers, IsEmpty());
}

TEST(ArrivalTest, TimesBeyondAllMeasureDoNotOverflow) {
  JobForTest job(4);
  const uint32_t world = job.World();
  RunRounds(job, world, 10, {});
  for (int32_t rank = 0; rank < 4; ++rank) {
    for (evidence::FlightEntry& entry : job.Record(rank).entries) entry.created_unix_ns = rank == 1 ? INT64_MAX : 1;
  }
  const JobView view = job.View();
  const ArrivalTable table = MeasureArrival(view);
  EXPECT_GE(table.ranks[1].lateness_ns, 0);
  EXPECT_GE(table.longest_gap_ns, 0);
}

}  // namespace
}  // namespace lockstep::hang
