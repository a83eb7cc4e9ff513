#include "model/step.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::model {
namespace {

struct Range {
  std::string_view name;
  int64_t start_ns;
  int64_t duration_ns;
  Category category = Category::kUserAnnotation;
};

Track MakeTrack(NameTable* names, int64_t thread, const std::vector<Range>& ranges, Lane lane = Lane::kOperators) {
  Track track;
  track.lane = lane;
  track.thread_id = thread;
  for (const Range& range : ranges) {
    track.events.start_ns.push_back(range.start_ns);
    track.events.duration_ns.push_back(range.duration_ns);
    track.events.name.push_back(names->Intern(range.name));
    track.events.category.push_back(range.category);
  }
  return track;
}

std::vector<std::pair<int64_t, int64_t>> NumbersAndStarts(const std::vector<Step>& steps) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const Step& step : steps) pairs.emplace_back(step.number, step.start_ns);
  return pairs;
}

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

TEST(StepTest, ProfilerStepsOfAnyCategoryAreFoundInOrderOfStart) {
  NameTable names;
  RankTrace rank;
  rank.tracks.push_back(MakeTrack(&names, 1, {{"ProfilerStep#6", 100, 90}, {"aten::add", 110, 5, Category::kCpuOp}}));
  rank.tracks.push_back(MakeTrack(&names, 2, {{"ProfilerStep#5", 0, 100, Category::kCpuOp}}));
  EXPECT_EQ(NumbersAndStarts(FindSteps(rank, names, "")), (Pairs{{5, 0}, {6, 100}}));
}

TEST(StepTest, StepsOnOtherLanesAreNotSteps) {
  NameTable names;
  RankTrace rank;
  rank.tracks.push_back(MakeTrack(&names, 7, {{"ProfilerStep#6", 100, 90}}, Lane::kDeviceAnnotation));
  EXPECT_TRUE(FindSteps(rank, names, "").empty());
}

TEST(StepTest, NamesThatOnlyLookLikeStepsAreNotSteps) {
  NameTable names;
  RankTrace rank;
  rank.tracks.push_back(MakeTrack(&names, 1,
                                  {{"ProfilerStep#", 0, 9},
                                   {"ProfilerStep#4x", 10, 9},
                                   {"ProfilerStep", 20, 9},
                                   {"ProfilerStep#99999999999999999999", 30, 9}}));
  EXPECT_TRUE(FindSteps(rank, names, "").empty());
}

TEST(StepTest, AStepSeenTwiceCountsOnce) {
  NameTable names;
  RankTrace rank;
  rank.tracks.push_back(
      MakeTrack(&names, 1, {{"ProfilerStep#5", 0, 100}, {"ProfilerStep#5", 1, 98, Category::kCpuOp}}));
  const std::vector<Step> steps = FindSteps(rank, names, "");
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].end_ns, 100);
}

TEST(StepTest, NeighboursThatOverlapByRoundingAreBothKept) {
  NameTable names;
  RankTrace rank;
  rank.tracks.push_back(MakeTrack(&names, 1, {{"ProfilerStep#5", 0, 101}, {"ProfilerStep#6", 100, 50}}));
  EXPECT_EQ(NumbersAndStarts(FindSteps(rank, names, "")), (Pairs{{5, 0}, {6, 100}}));
}

TEST(StepTest, NamedStepsAreNumberedFromZero) {
  NameTable names;
  RankTrace rank;
  rank.tracks.push_back(MakeTrack(
      &names, 1,
      {{"train", 0, 10}, {"train_step", 20, 10}, {"training", 40, 10}, {"train 2", 60, 10}, {"retrain", 80, 1}}));
  EXPECT_EQ(NumbersAndStarts(FindSteps(rank, names, "train")), (Pairs{{0, 0}, {1, 20}, {2, 60}}));
}

TEST(StepTest, NestedCallsOfANamedStepAreOneStep) {
  NameTable names;
  RankTrace rank;
  rank.tracks.push_back(MakeTrack(&names, 1, {{"step", 0, 100}, {"step", 10, 20}, {"step", 100, 5}}));
  EXPECT_EQ(NumbersAndStarts(FindSteps(rank, names, "step")), (Pairs{{0, 0}, {1, 100}}));
}

}  // namespace
}  // namespace lockstep::model
