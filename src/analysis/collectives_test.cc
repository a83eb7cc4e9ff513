#include "analysis/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "analysis/testing/collective_job.h"

namespace lockstep::analysis {
namespace {

using testing::AddCall;
using ::testing::ElementsAre;
using testing::Job;
using testing::kMs;
using testing::PlannedCall;
using testing::RunBuilder;

std::vector<size_t> RanksOf(const CollectiveInstance& instance) {
  std::vector<size_t> ranks;
  for (const CollectiveMember& member : instance.members) ranks.push_back(member.rank_index);
  return ranks;
}

std::vector<std::optional<int64_t>> WaitsOf(const CollectiveInstance& instance) {
  std::vector<std::optional<int64_t>> waits;
  for (const CollectiveMember& member : instance.members) waits.push_back(member.wait_ns);
  return waits;
}

TEST(CollectivesTest, WithoutMetadataCallsAreJoinedByOrder) {
  RunBuilder builder;
  for (const int32_t rank : {0, 1}) {
    builder.Rank(rank).WorldSize(2);
    AddCall(builder, {rank, 1000 + 100 * rank, 1500});
    AddCall(builder, {rank, 3000 - 200 * rank, 3400});
  }
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  ASSERT_EQ(collectives.instances.size(), 2u);
  const CollectiveInstance& first = collectives.instances[0];
  EXPECT_EQ(first.basis, MatchBasis::kOrder);
  EXPECT_EQ(first.group, "default");
  EXPECT_EQ(first.name, "all_reduce");
  EXPECT_TRUE(first.complete);
  EXPECT_THAT(WaitsOf(first), ElementsAre(100, 0));
  EXPECT_EQ(first.transfer_ns, 400);
  EXPECT_THAT(WaitsOf(collectives.instances[1]), ElementsAre(0, 200));
}

TEST(CollectivesTest, SequenceNumbersJoinWhateverTheOrder) {
  RunBuilder builder;
  // Rank 1's window lacks number 5 and rank 0's number 7.
  for (const int64_t number : {5, 6}) {
    AddCall(builder, {0, number * 1000, number * 1000 + 100, "allreduce", 10, "0", "[0, 1]", number});
  }
  for (const int64_t number : {6, 7}) {
    AddCall(builder, {1, number * 1000, number * 1000 + 100, "allreduce", 10, "0", "[0, 1]", number});
  }
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  ASSERT_EQ(collectives.instances.size(), 3u);
  EXPECT_EQ(collectives.instances[0].sequence, 5);
  EXPECT_FALSE(collectives.instances[0].complete);
  EXPECT_THAT(collectives.instances[0].missing_ranks, ElementsAre(Rank{1}));
  EXPECT_THAT(WaitsOf(collectives.instances[0]), ElementsAre(std::nullopt));
  EXPECT_FALSE(collectives.instances[0].transfer_ns.has_value());
  EXPECT_EQ(collectives.instances[1].basis, MatchBasis::kSequence);
  EXPECT_TRUE(collectives.instances[1].complete);
  EXPECT_THAT(collectives.instances[2].missing_ranks, ElementsAre(Rank{0}));
}

TEST(CollectivesTest, ContradictingSequenceNumbersFallBackToOrderAndSaySo) {
  RunBuilder builder;
  for (const int32_t rank : {0, 1}) {
    AddCall(builder, {rank, 1000, 1100, "allreduce", 10, "0", "[0, 1]", 1 + rank});
    AddCall(builder, {rank, 2000, 2100, "_allgather_base", 10, "0", "[0, 1]", 2 + rank});
  }
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  ASSERT_EQ(collectives.instances.size(), 2u);
  EXPECT_EQ(collectives.instances[0].basis, MatchBasis::kOrder);
  EXPECT_TRUE(collectives.instances[0].complete);
  ASSERT_EQ(job.run.ledger.entries().size(), 1u);
  EXPECT_EQ(job.run.ledger.entries()[0].code, "sequence_contradiction");
}

TEST(CollectivesTest, SeveralKernelsOfOneNumberAreToldApart) {
  RunBuilder builder;
  for (const int32_t rank : {0, 1}) {
    AddCall(builder, {rank, 1000, 1100, "allreduce", 10, "0", "[0, 1]", 9});
    AddCall(builder, {rank, 1200, 1300, "allreduce", 20, "0", "[0, 1]", 9});
  }
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  ASSERT_EQ(collectives.instances.size(), 2u);
  EXPECT_EQ(collectives.instances[0].bytes, 40);
  EXPECT_EQ(collectives.instances[1].bytes, 80);
}

TEST(CollectivesTest, AClippedWindowShiftsNothing) {
  RunBuilder builder;
  const std::vector<int64_t> sizes = {10, 20, 30, 10, 20, 40};
  for (const int32_t rank : {0, 1}) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (rank == 1 && i < 2) continue;
      const int64_t start_ns = 10'000 * static_cast<int64_t>(i);
      AddCall(builder, {rank, start_ns, start_ns + 500, "allreduce", sizes[i], "0", "[0, 1]"});
    }
  }
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  ASSERT_EQ(collectives.instances.size(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(collectives.instances[i].bytes, sizes[i] * 4);
    EXPECT_EQ(collectives.instances[i].complete, i >= 2) << i;
  }
}

TEST(CollectivesTest, StepNumbersAnchorEqualCallsOfClippedWindows) {
  RunBuilder builder;
  // The same call in every step; rank 1 has recorded two steps later, so equal order would be wrong.
  for (const int32_t rank : {0, 1}) {
    for (int64_t step = 0; step < 5; ++step) {
      const int64_t number = step + 2 * rank;
      const int64_t start_ns = number * 1'000'000;
      builder.Rank(rank).Annotation(1, "ProfilerStep#" + std::to_string(number), start_ns, 900'000);
      builder.Rank(rank).Runtime(1, "cudaLaunchKernel", start_ns + 1000, 10, static_cast<uint32_t>(number + 1));
      builder.Rank(rank).Kernel(20, testing::KernelName("allreduce"), start_ns + 2000, 500,
                                static_cast<uint32_t>(number + 1));
    }
  }
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  ASSERT_EQ(collectives.instances.size(), 7u);
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(collectives.instances[i].members.size(), i >= 2 && i < 5 ? 2u : 1u) << i;
}

TEST(CollectivesTest, OneNameMayStandForTwoGroups) {
  RunBuilder builder;
  for (const int32_t rank : {0, 1, 2, 3}) {
    AddCall(builder, {rank, 1000 + rank, 1100, "allreduce", 10, "tp", rank < 2 ? "[0, 1]" : "[2, 3]", 1});
  }
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  ASSERT_EQ(collectives.instances.size(), 2u);
  EXPECT_THAT(RanksOf(collectives.instances[0]), ElementsAre(0u, 1u));
  EXPECT_THAT(RanksOf(collectives.instances[1]), ElementsAre(2u, 3u));
  EXPECT_EQ(collectives.instances[0].group_size, 2);
  EXPECT_TRUE(collectives.instances[0].complete);
}

TEST(CollectivesTest, ACutListOfRanksTakesItsMembersFromTheFile) {
  RunBuilder builder;
  model::ProcessGroup group;
  group.name = "0";
  group.size = 3;
  group.ranks = {0, 1, 2};
  for (const int32_t rank : {0, 1, 2}) {
    builder.Rank(rank).Group(group);
    AddCall(builder, {rank, 1000 + rank, 1100, "allreduce", 10, "0", "[0, 1, ...]"});
  }
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  ASSERT_EQ(collectives.instances.size(), 1u);
  EXPECT_EQ(collectives.instances[0].group_size, 3);
  EXPECT_TRUE(collectives.instances[0].complete);
}

TEST(CollectivesTest, WhereATraceIsMissingWaitsAreToldUpToTheLastThatHasOne) {
  RunBuilder builder;
  for (const int32_t rank : {0, 1}) AddCall(builder, {rank, 1000 + rank, 1100, "allreduce", 10, "0", "[0, 1, 2]", 1});
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  ASSERT_EQ(collectives.instances.size(), 1u);
  EXPECT_FALSE(collectives.instances[0].complete);
  EXPECT_TRUE(collectives.instances[0].some_unrecorded);
  EXPECT_TRUE(collectives.instances[0].missing_ranks.empty());
  EXPECT_THAT(WaitsOf(collectives.instances[0]), ElementsAre(1, 0));
  EXPECT_FALSE(collectives.instances[0].transfer_ns.has_value());
  EXPECT_FALSE(collectives.instances[0].busbw_bytes_per_s.has_value());
}

TEST(CollectivesTest, OneRankOfAGroupTellsNoWait) {
  RunBuilder builder;
  AddCall(builder, {0, 1000, 1100, "allreduce", 10, "0", "[0, 1]", 1});
  builder.Rank(2);
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  ASSERT_EQ(collectives.instances.size(), 1u);
  EXPECT_TRUE(collectives.instances[0].some_unrecorded);
  EXPECT_THAT(WaitsOf(collectives.instances[0]), ElementsAre(std::nullopt));
}

TEST(CollectivesTest, ASendToNobodyKnownIsNotOneToAnUnrecordedRank) {
  RunBuilder builder;
  AddCall(builder, {0, 1000, 1100, "send", 10, "0", "[0, 1]"});
  AddCall(builder, {1, 1000, 1100, "recv", 10, "0", "[0, 1]"});
  Job job(builder.Build());
  for (const CollectiveInstance& instance : job.Time().instances) {
    EXPECT_FALSE(instance.complete);
    EXPECT_FALSE(instance.some_unrecorded);
  }
}

/// Three all_reduces of ranks 0 and 1 of three: in the second rank 2, which has no trace, came `late_ns` after both.
Collectives TwoOfThree(int64_t late_ns) {
  constexpr int64_t kApartNs = 10'000'000;
  constexpr int64_t kTransferNs = 100'000;
  RunBuilder builder;
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t first_ns = i * kApartNs;
    const int64_t last_ns = first_ns + 200'000;
    const int64_t end_ns = last_ns + (i == 1 ? late_ns : 0) + kTransferNs;
    AddCall(builder, {0, first_ns, end_ns, "allreduce", 10, "0", "[0, 1, 2]", i});
    AddCall(builder, {1, last_ns, end_ns, "allreduce", 10, "0", "[0, 1, 2]", i});
  }
  Job job(builder.Build());
  return job.Time();
}

TEST(CollectivesTest, WhoIsLastOfThoseRecordedIsNotWhereAnUnrecordedRankCameLater) {
  const Collectives collectives = TwoOfThree(500'000);
  ASSERT_EQ(collectives.instances.size(), 3u);
  for (const size_t i : {0u, 2u}) {
    EXPECT_EQ(collectives.instances[i].last_rank_index, 1u);
    EXPECT_EQ(collectives.instances[i].unrecorded_wait_ns, 0);
  }
  EXPECT_EQ(collectives.instances[1].last_rank_index, std::nullopt);
  EXPECT_EQ(collectives.instances[1].unrecorded_wait_ns, 500'000);
  EXPECT_THAT(WaitsOf(collectives.instances[1]), ElementsAre(200'000, 0));
}

TEST(CollectivesTest, ATransferThatTakesALittleLongerSpeaksOfNobody) {
  const Collectives collectives = TwoOfThree(50'000);
  EXPECT_EQ(collectives.instances[1].last_rank_index, 1u);
  EXPECT_EQ(collectives.instances[1].unrecorded_wait_ns, 0);
}

TEST(CollectivesTest, OneRankAloneOfAnUnknownNumberIsNotComplete) {
  RunBuilder builder;
  AddCall(builder, {0, 1000, 1100});
  Job job(builder.Build());
  EXPECT_FALSE(job.Time().instances.front().complete);
}

TEST(CollectivesTest, ASendIsJoinedWithItsReceive) {
  RunBuilder builder;
  AddCall(builder, {0, 1000, 2000, "send", 10, "pp", "[0, 1]", std::nullopt, 1});
  AddCall(builder, {1, 1800, 2000, "recv", 10, "pp", "[0, 1]", std::nullopt, 0});
  AddCall(builder, {1, 3000, 3500, "send", 10, "pp", "[0, 1]", std::nullopt, 0});
  AddCall(builder, {0, 3400, 3500, "recv", 10, "pp", "[0, 1]", std::nullopt, 1});
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  ASSERT_EQ(collectives.instances.size(), 2u);
  EXPECT_EQ(collectives.instances[0].name, "send_recv");
  EXPECT_EQ(collectives.instances[0].group, "pp 0->1");
  EXPECT_EQ(collectives.instances[1].group, "pp 1->0");
  EXPECT_FALSE(collectives.instances[0].synchronising);
}

TEST(CollectivesTest, TheRootOfABroadcastWaitsNoLongerThanItsKernel) {
  RunBuilder builder;
  AddCall(builder, {0, 1000, 1200, "broadcast", 10, "0", "[0, 1]", 1});
  AddCall(builder, {1, 5000, 5300, "broadcast", 10, "0", "[0, 1]", 1});
  AddCall(builder, {0, 9000, 9100, "allreduce", 10, "0", "[0, 1]", 2});
  AddCall(builder, {1, 9000, 9100, "allreduce", 10, "0", "[0, 1]", 2});
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  EXPECT_THAT(WaitsOf(collectives.instances[0]), ElementsAre(200, 0));
  EXPECT_EQ(collectives.instances[0].transfer_ns, 300);
}

TEST(CollectivesTest, SizesComeFromTheRangeAroundTheLaunch) {
  RunBuilder builder;
  for (const int32_t rank : {0, 1}) {
    auto& trace = builder.Rank(rank).WorldSize(2);
    trace.Runtime(7, "cudaLaunchKernel", 500, 10, 3);
    trace.Kernel(20, testing::KernelName("all_to_all"), 1000, 100, 3);
    model::CollectiveRecord range;
    range.source = model::CollectiveRecord::Source::kAnnotation;
    range.start_ns = 450;
    range.duration_ns = 100;
    range.process_id = 100 + rank;
    range.thread_id = 7;
    range.event_name = trace.Name("nccl:all_to_all");
    range.dtype = trace.Name("int");
    range.in_elements = 3392;
    trace.Collective(range);
  }
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  ASSERT_EQ(collectives.instances.size(), 1u);
  EXPECT_EQ(collectives.instances[0].name, "all_to_all");
  EXPECT_EQ(collectives.instances[0].bytes, 13568);
  ASSERT_TRUE(collectives.instances[0].members[0].issue.has_value());
  EXPECT_EQ(collectives.instances[0].members[0].issue->trace_ns, 500);
  EXPECT_EQ(collectives.instances[0].members[0].issue->thread_id, 7);
}

TEST(CollectivesTest, RangesOfACpuBackendAreCallsAndTheirIssueIsFound) {
  RunBuilder builder;
  for (const int32_t rank : {0, 1}) {
    auto& trace = builder.Rank(rank).WorldSize(2);
    for (const int64_t elements : {100, 200}) {
      model::CollectiveRecord record;
      record.source = model::CollectiveRecord::Source::kAnnotation;
      record.process_id = 100 + rank;
      record.in_elements = elements;
      record.dtype = trace.Name("float");
      record.event_name = trace.Name("c10d::allreduce_");
      record.start_ns = 1000 + elements;
      record.duration_ns = 10;
      record.thread_id = 1;
      trace.Collective(record);
      // The two backend threads of rank 1 take the calls up in the other order.
      record.event_name = trace.Name("gloo:all_reduce");
      record.start_ns = rank == 0 ? 2000 + elements : 2300 - elements;
      record.duration_ns = 9000 - record.start_ns;
      record.thread_id = 50 + elements;
      trace.Collective(record);
    }
  }
  Job job(builder.Build());
  const Collectives collectives = job.Time();
  ASSERT_EQ(collectives.instances.size(), 2u);
  for (const CollectiveInstance& instance : collectives.instances) {
    ASSERT_EQ(instance.members.size(), 2u);
    EXPECT_TRUE(instance.complete);
    for (const CollectiveMember& member : instance.members) {
      ASSERT_TRUE(member.issue.has_value());
      EXPECT_EQ(member.issue->trace_ns, 1000 + *instance.bytes / 4);
    }
  }
}

TEST(CollectivesTest, ARecorderThatNamesNoGroupMeansTheOnlyOneOfTheJob) {
  const auto member_counts = [](int32_t world_size, bool second_group) {
    RunBuilder builder;
    for (const int32_t rank : {0, 1, 2}) builder.Rank(rank).WorldSize(world_size);
    AddCall(builder, {0, 1000, 1500, "allreduce", 10, "0", "[0, 1, 2]", 7});
    AddCall(builder, {1, 1100, 1500, "allreduce", 10, "0", "[0, 1, 2]", 7});
    if (second_group) AddCall(builder, {0, 2000, 2500, "allreduce", 10, "1", "[0, 1]", 3});
    AddCall(builder, {2, 1200, 1500});
    Job job(builder.Build());
    std::vector<size_t> counts;
    for (const CollectiveInstance& instance : job.Time().instances) counts.push_back(instance.members.size());
    return counts;
  };
  EXPECT_THAT(member_counts(3, false), ElementsAre(3));
  EXPECT_THAT(member_counts(4, false), ElementsAre(2, 1)) << "the group is not the whole job";
  EXPECT_THAT(member_counts(3, true), ElementsAre(2, 1, 1)) << "it may be of either";
}

TEST(CollectivesTest, WhoOnlyBeganToRecordLateIsNotWaitedFor) {
  const auto waits_of_first = [&](bool began_midway, int64_t lead_of_late_ns) {
    RunBuilder builder;
    for (const int32_t rank : {0, 1}) {
      const int64_t begin_ns = rank * 100 * kMs;
      builder.Rank(rank).WorldSize(2).Op(1, "aten::mm", begin_ns, kMs);
      AddCall(builder, {rank, begin_ns + (rank == 1 ? lead_of_late_ns : 5 * kMs), 200 * kMs});
      AddCall(builder, {rank, (300 + 20 * rank) * kMs, 330 * kMs});
    }
    Job job(builder.Build());
    job.run.ranks[1].began_midway = began_midway;
    const Collectives collectives = job.Time();
    EXPECT_THAT(WaitsOf(collectives.instances[1]), ElementsAre(20 * kMs, 0)) << "only the first is doubtful";
    return WaitsOf(collectives.instances[0]);
  };
  EXPECT_THAT(waits_of_first(true, 6 * kMs), ElementsAre(std::nullopt, std::nullopt));
  EXPECT_THAT(waits_of_first(false, 6 * kMs), ElementsAre(101 * kMs, 0)) << "nothing says that its recording was late";
  EXPECT_THAT(waits_of_first(true, 60 * kMs), ElementsAre(155 * kMs, 0)) << "it was late by itself as well";
}

TEST(CollectivesTest, TimesThatCannotBeAreLeftOut) {
  RunBuilder builder;
  for (const int32_t rank : {0, 1}) {
    builder.Rank(rank).WorldSize(2);
    for (int64_t i = 0; i < 5; ++i) AddCall(builder, {rank, 1000 * i, 1000 * i + 500});
  }
  AddCall(builder, {1, INT64_MAX / 4, INT64_MAX / 4 + 10});
  AddCall(builder, {0, INT64_MIN / 4, INT64_MAX / 4});
  Job job(builder.Build());
  EXPECT_EQ(job.Time().instances.size(), 5u);
}

/// Processor time that joining `count` collectives of eight ranks takes.
std::clock_t ClocksToJoin(int64_t count) {
  RunBuilder builder;
  for (int32_t rank = 0; rank < 8; ++rank) {
    builder.Rank(rank).WorldSize(8);
    for (int64_t i = rank; i < count; ++i) AddCall(builder, {rank, i * 1000, i * 1000 + 500, "allreduce", 10 + i % 7});
  }
  Job job(builder.Build());
  const std::clock_t begin = std::clock();
  const Collectives collectives = job.Match();
  const std::clock_t spent = std::clock() - begin;
  EXPECT_EQ(collectives.instances.size(), static_cast<size_t>(count));
  EXPECT_TRUE(collectives.instances.back().complete);
  return spent;
}

TEST(CollectivesTest, JoiningGrowsWithTheCountOfCollectives) {
  // Sixteen times as many: quadratic work would be 256 times as much.
  EXPECT_LT(ClocksToJoin(32'000), 64 * std::max<std::clock_t>(ClocksToJoin(2'000), CLOCKS_PER_SEC / 1000));
}

}  // namespace
}  // namespace lockstep::analysis
