#include "ingest/span_follow/stage_cutter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ingest/span_follow/stage_span_for_test.h"

namespace lockstep::ingest::span_follow {
namespace {

using model::Stage;
using model::StageSpan;
using model::StepStages;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A process's records, and the cutter that takes them.
class StageCutterTest : public ::testing::Test {
 protected:
  void Add(std::string name, int64_t start_ns, int64_t end_ns, uint64_t thread = 1) {
    names_.push_back(std::move(name));
    next_.spans.push_back({thread, static_cast<uint32_t>(names_.size() - 1), start_ns, end_ns - start_ns});
  }
  void AddStep(int64_t number, int64_t start_ns, int64_t end_ns) {
    next_.steps.push_back({1, number, start_ns, end_ns - start_ns});
  }
  std::vector<StepStages> Take() {
    const std::vector<StepStages> steps =
        cutter_.Take(next_, [&](uint32_t name) -> const std::string& { return names_[name]; });
    next_ = {};
    return steps;
  }

  StageCutter cutter_;
  Followed next_;
  std::vector<std::string> names_;
};

TEST_F(StageCutterTest, StagesAreInOrderOfTimeAndWhatNoneCoversIsOther) {
  Add("input", 10, 20);
  Add("forward", 20, 50);
  Add("a layer", 25, 45);
  Add("backward", 55, 90);
  AddStep(3, 0, 100);
  const std::vector<StepStages> steps = Take();
  ASSERT_THAT(steps, SizeIs(1));
  EXPECT_EQ(steps[0].number, 3);
  EXPECT_EQ(steps[0].duration_ns, 100);
  EXPECT_THAT(steps[0].spans, ElementsAre(Span(Stage::kOther, 10), Span(Stage::kInput, 10), Span(Stage::kForward, 30),
                                          Span(Stage::kOther, 5), Span(Stage::kBackward, 35), Span(Stage::kOther, 10)));
}

TEST_F(StageCutterTest, WaitsTellWhomTheyAreFor) {
  Add("dp[0,2]/comm", 0, 10);
  Add("comm", 10, 20);
  Add("pp[0,1]/p2p", 20, 30);
  Add("dp[0,2]/comm", 30, 40);
  Add("dp[0,2]/forward", 40, 50);
  AddStep(0, 0, 50);
  const std::vector<StepStages> steps = Take();
  ASSERT_THAT(steps, SizeIs(1));
  std::vector<std::pair<int, bool>> whom;
  for (const StageSpan& span : steps[0].spans) whom.emplace_back(span.waited_for.group, span.waited_for.is_pairwise);
  EXPECT_THAT(whom, ElementsAre(std::pair(1, false), std::pair(0, false), std::pair(2, true), std::pair(1, false),
                                std::pair(0, false)));
  EXPECT_THAT(cutter_.groups(), ElementsAre("dp[0,2]", "pp[0,1]"));
}

TEST_F(StageCutterTest, WhatLiesInAStageIsTakenOffAndWaitsStayApart) {
  Add("backward", 0, 50);
  Add("gc", 10, 15);
  Add("comm", 30, 40);
  Add("all_reduce", 50, 60);
  Add("barrier", 60, 65);
  AddStep(0, 0, 65);
  const std::vector<StepStages> steps = Take();
  ASSERT_THAT(steps, SizeIs(1));
  EXPECT_THAT(steps[0].spans,
              ElementsAre(Span(Stage::kBackward, 10), Span(Stage::kGarbageCollection, 5), Span(Stage::kBackward, 15),
                          Span(Stage::kCommunication, 10), Span(Stage::kBackward, 10), Span(Stage::kCommunication, 10),
                          Span(Stage::kCommunication, 5)));
}

TEST_F(StageCutterTest, SpansWaitForTheirStepAndThoseOfOtherThreadsDoNotCount) {
  Add("forward", 0, 40);
  Add("forward", 0, 90, 2);
  EXPECT_THAT(Take(), IsEmpty());
  AddStep(0, 0, 50);
  AddStep(1, 50, 60);
  const std::vector<StepStages> steps = Take();
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_THAT(steps[0].spans, ElementsAre(Span(Stage::kForward, 40), Span(Stage::kOther, 10)));
  EXPECT_THAT(steps[1].spans, ElementsAre(Span(Stage::kOther, 10)));
}

TEST_F(StageCutterTest, PartsThatOverlapOrReachIntoTheNextStepKeepTheirTime) {
  Add("input", 0, 11);
  Add("forward", 10, 50);  // Where a newer anchor moved it: it begins before the one before it ended,
  Add("optimizer", 80, 99);
  Add("input", 98, 140);  // and before its step.
  AddStep(0, 0, 100);
  AddStep(1, 100, 150);
  const std::vector<StepStages> steps = Take();
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_THAT(steps[0].spans, ElementsAre(Span(Stage::kInput, 10), Span(Stage::kForward, 40), Span(Stage::kOther, 30),
                                          Span(Stage::kOptimizer, 18), Span(Stage::kInput, 2)));
  EXPECT_THAT(steps[1].spans, ElementsAre(Span(Stage::kInput, 40), Span(Stage::kOther, 10)));
}

TEST_F(StageCutterTest, WhatTheDeviceSaysComesInTheHostsPlace) {
  const auto count = [&](std::string name, double value) {
    names_.push_back(std::move(name));
    next_.counters.push_back({static_cast<uint32_t>(names_.size() - 1), 0, value});
  };
  count("device_times", 0);
  Add("forward", 0, 5);
  AddStep(0, 0, 10);
  EXPECT_THAT(Take(), IsEmpty());
  count("device_step", 0);
  count("device_stage/forward", 70);
  count("device_stage/dp[0,2]/comm", 20);
  count("device_stage/tp[0,1]/p2p", 9);
  count("device_step_end", 3);
  const std::vector<StepStages> steps = Take();
  ASSERT_THAT(steps, SizeIs(1));
  EXPECT_THAT(steps[0].spans,
              ElementsAre(Span(Stage::kForward, 70), Span(Stage::kCommunication, 20), Span(Stage::kCommunication, 9)));
  EXPECT_THAT(cutter_.groups(), ElementsAre("dp[0,2]", "tp[0,1]"));
  EXPECT_EQ(steps[0].spans[1].waited_for.group, 1);
  EXPECT_TRUE(steps[0].spans[2].waited_for.is_pairwise);
  EXPECT_TRUE(cutter_.has_device_times());
}

}  // namespace
}  // namespace lockstep::ingest::span_follow
