#include "analysis/frontier/suspicion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace lockstep::frontier {
namespace {

using model::RankStages;
using model::Stage;
using model::StepStages;

constexpr int64_t kForwardNs = 40'000'000;
constexpr int64_t kWaitNs = 2'000'000;

/// A step each in which ranks compute so long; with `meets` the others wait for the slowest one.
void AddSharedStep(const std::vector<int64_t>& forward_ns, bool meets, std::vector<RankStages>* ranks) {
  int64_t longest_ns = 0;
  for (const int64_t ns : forward_ns) longest_ns = std::max(longest_ns, ns);
  ranks->resize(forward_ns.size());
  for (size_t i = 0; i < forward_ns.size(); ++i) {
    RankStages& rank = (*ranks)[i];
    rank.rank = static_cast<int32_t>(i);
    StepStages step{.number = static_cast<int64_t>(rank.steps.size()), .spans = {{Stage::kForward, forward_ns[i]}}};
    if (meets) step.spans.push_back({Stage::kCommunication, kWaitNs + longest_ns - forward_ns[i]});
    for (const model::StageSpan& span : step.spans) step.duration_ns += span.duration_ns;
    rank.steps.push_back(std::move(step));
  }
}

std::optional<Suspicion> SuspectAfter(int64_t step_count, const std::vector<int64_t>& forward_ns, bool meets) {
  std::vector<RankStages> ranks;
  for (int64_t i = 0; i < step_count; ++i) AddSharedStep(forward_ns, meets, &ranks);
  return Suspect(AssessJob(std::move(ranks), {}));
}

TEST(SuspicionTest, AStragglerIsTracedBesideTheRankThatTakesTheUsualTime) {
  const auto suspicion = SuspectAfter(20, {kForwardNs, 3 * kForwardNs, kForwardNs - 5, kForwardNs + 5}, true);
  ASSERT_TRUE(suspicion);
  EXPECT_EQ(1, suspicion->rank);
  EXPECT_EQ(0, suspicion->peer);
  EXPECT_EQ(Stage::kForward, suspicion->stage);
  EXPECT_TRUE(suspicion->stands_out);
}

TEST(SuspicionTest, WhereNobodyIsSeenToWaitTheRankIsTracedThatIsSlowInAStage) {
  const auto suspicion = SuspectAfter(20, {kForwardNs, kForwardNs, 2 * kForwardNs}, false);
  ASSERT_TRUE(suspicion);
  EXPECT_EQ(2, suspicion->rank);
  EXPECT_FALSE(suspicion->stage);
  EXPECT_TRUE(suspicion->stands_out);
}

TEST(SuspicionTest, WaitsThatLieInOtherStagesHideNobody) {
  std::vector<RankStages> ranks(4);
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].rank = static_cast<int32_t>(i);
    const int64_t late_ns = i == 2 ? kForwardNs : 0;
    for (int64_t step = 0; step < 20; ++step) {
      ranks[i].steps.push_back({.number = step,
                                .duration_ns = 3 * kForwardNs,
                                .spans = {{Stage::kForward, kForwardNs + late_ns},
                                          {Stage::kOther, kForwardNs - late_ns},
                                          {Stage::kBackward, kForwardNs}}});
    }
  }
  const auto suspicion = Suspect(AssessJob(std::move(ranks), {}));
  ASSERT_TRUE(suspicion);
  EXPECT_EQ(2, suspicion->rank);
  EXPECT_TRUE(suspicion->stands_out);
}

TEST(SuspicionTest, WhereNobodyIsSeenToWaitAndAllTakeAsLongOneIsTracedAllTheSame) {
  const auto suspicion = SuspectAfter(20, {kForwardNs, kForwardNs + 2}, false);
  ASSERT_TRUE(suspicion);
  EXPECT_EQ(1, suspicion->rank);
  EXPECT_EQ(0, suspicion->peer);
  EXPECT_FALSE(suspicion->stands_out);
}

TEST(SuspicionTest, NothingIsTracedThatAFewStepsWouldNotShow) {
  EXPECT_FALSE(SuspectAfter(20, {kForwardNs, kForwardNs}, true)) << "even";
  EXPECT_FALSE(SuspectAfter(3, {kForwardNs, 3 * kForwardNs}, true)) << "too few steps";
  EXPECT_FALSE(SuspectAfter(20, {kForwardNs}, false)) << "one rank";
  std::vector<RankStages> ranks;
  for (int64_t i = 0; i < 20; ++i) AddSharedStep({kForwardNs, i == 10 ? 10 * kForwardNs : kForwardNs}, true, &ranks);
  const JobStages job = AssessJob(std::move(ranks), {});
  EXPECT_EQ(Answer::kStraggler, job.verdict.answer);
  EXPECT_FALSE(Suspect(job)) << "once";
}

}  // namespace
}  // namespace lockstep::frontier
