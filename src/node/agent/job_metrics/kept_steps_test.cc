#include "node/agent/job_metrics/kept_steps.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace lockstep::agent {
namespace {

using control::kMostKeptBytes;
using control::kMostKeptRankBytes;
using control::kMostKeptSteps;
using ingest::span_follow::Followed;
using model::StepStages;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class KeptStepsTest : public ::testing::Test {
 protected:
  /// A process of `rank` makes `count` steps, each of one span, or of 2 * `parts` + 1.
  void Step(int32_t rank, int64_t count, int parts = 0, const std::string& job = "4711") {
    const std::string forward = "forward";
    Followed followed;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t start_ns = next_ns_;
      for (int part = 0; part < parts; ++part) {
        followed.spans.push_back({.thread_id = 1, .name = 1, .start_ns = next_ns_ + 1000, .duration_ns = 1000});
        next_ns_ += 3000;
      }
      next_ns_ += 1000;
      followed.steps.push_back(
          {.thread_id = 1, .number = next_number_++, .start_ns = start_ns, .duration_ns = next_ns_ - start_ns});
    }
    RankMeter meter;
    meter.Take(followed, [&](uint32_t) -> const std::string& { return forward; });
    kept_.Take({job, rank, {}, rank, 100 + rank, "n1", "ada", "cpu"}, meter);
  }
  std::vector<StepStages> StepsOf(size_t idx, const control::StagesQuery& query = {}) const {
    return control::UnpackSteps(kept_.Ask(query).ranks.at(idx).steps).value();
  }

  KeptSteps kept_;
  int64_t next_ns_ = 1'790'000'000'000'000'000;
  int64_t next_number_ = 0;
};

TEST_F(KeptStepsTest, TheNewestStepsOfARankAreGiven) {
  Step(1, 3, 2);
  Step(0, 5);
  const control::NodeStages all = kept_.Ask({});
  ASSERT_THAT(all.ranks, SizeIs(2));
  EXPECT_EQ(all.ranks[0].rank, 0);
  EXPECT_EQ(all.ranks[0].job_id, "4711");
  EXPECT_EQ(all.ranks[1].seen_step_count, 3U);
  ASSERT_THAT(StepsOf(1), SizeIs(3));
  EXPECT_THAT(StepsOf(1)[2].spans, SizeIs(5));
  const std::vector<StepStages> two = StepsOf(0, {.last_steps = 2});
  ASSERT_THAT(two, SizeIs(2));
  EXPECT_EQ(two[1].number, 7);
  EXPECT_EQ(kept_.Ask({.last_steps = 2}).ranks[0].kept_step_count, 5U);
}

TEST_F(KeptStepsTest, OlderStepsMakeRoomAndAreCounted) {
  for (int i = 0; i < 30; ++i) Step(0, 100);
  const control::RankSteps rank = kept_.Ask({}).ranks.at(0);
  EXPECT_EQ(rank.seen_step_count, 3000U);
  EXPECT_EQ(rank.kept_step_count, kMostKeptSteps);
  const std::vector<StepStages> steps = StepsOf(0);
  EXPECT_EQ(steps.front().number, 3000 - static_cast<int64_t>(kMostKeptSteps));
  EXPECT_EQ(steps.back().number, 2999);
}

TEST_F(KeptStepsTest, ManySpansTakeTheRoomOfManySteps) {
  for (int i = 0; i < 20; ++i) Step(0, 10, 1000);
  const control::RankSteps rank = kept_.Ask({}).ranks.at(0);
  EXPECT_LE(rank.steps.size(), kMostKeptRankBytes);
  EXPECT_GT(rank.steps.size(), kMostKeptRankBytes * 3 / 4);
  EXPECT_LT(rank.kept_step_count, rank.seen_step_count);
}

TEST_F(KeptStepsTest, RanksShareWhatThereIs) {
  constexpr size_t kRanks = 2 * kMostKeptBytes / kMostKeptRankBytes;
  for (size_t i = 0; i < kRanks; ++i) Step(static_cast<int32_t>(i), 10, 8000);
  size_t bytes = 0;
  for (const control::RankSteps& rank : kept_.Ask({}).ranks) {
    EXPECT_LE(rank.steps.size(), kMostKeptRankBytes / 2);
    bytes += rank.steps.size();
  }
  EXPECT_LE(bytes, kMostKeptBytes);
  EXPECT_GT(bytes, kMostKeptBytes / 2);
}

TEST_F(KeptStepsTest, OnlyTheJobThatIsAskedForIsGiven) {
  Step(0, 1, 0, "123.pbs01");
  Step(1, 1, 0, "1234");
  Step(2, 1, 0, "");
  EXPECT_THAT(kept_.Ask({.job_id = "123"}).ranks, SizeIs(1));
  EXPECT_THAT(kept_.Ask({.job_id = "12"}).ranks, IsEmpty());
  EXPECT_THAT(kept_.Ask({}).ranks, SizeIs(3));
}

TEST_F(KeptStepsTest, AProcessWithoutStepsIsNoRankAndOneThatEndedIsForgotten) {
  Step(0, 0);
  Step(1, 1);
  EXPECT_THAT(kept_.Ask({}).ranks, SizeIs(1));
  kept_.Forget(101);
  EXPECT_THAT(kept_.Ask({}).ranks, IsEmpty());
}

}  // namespace
}  // namespace lockstep::agent
