#include "ingest/span_follow/device_steps.h"

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

class DeviceStepsTest : public ::testing::Test {
 protected:
  void Count(const std::string& name, double value) {
    steps_.TakeCounter(name, value, [](std::string_view span_name, int64_t ns) -> std::optional<StageSpan> {
      const std::optional<Stage> stage = model::StageOf(span_name);
      if (!stage) return std::nullopt;
      return StageSpan(*stage, ns);
    });
  }
  void CountStep(int64_t number, const std::vector<std::pair<std::string, double>>& parts) {
    Count("device_step", static_cast<double>(number));
    for (const auto& [name, ns] : parts) Count("device_stage/" + name, ns);
    Count("device_step_end", static_cast<double>(parts.size()));
  }
  /// Steps of the host's of 100 ns each, all of them forward.
  std::vector<StepStages> Take(int64_t first, int64_t last) {
    std::vector<StepStages> host;
    for (int64_t number = first; number <= last; ++number) {
      host.push_back({number, number * 100, 100, {{Stage::kForward, 100}}});
    }
    return steps_.Take(std::move(host));
  }
  static std::vector<int64_t> Numbers(const std::vector<StepStages>& steps) {
    std::vector<int64_t> numbers;
    for (const StepStages& step : steps) numbers.push_back(step.number);
    return numbers;
  }

  DeviceSteps steps_;
};

TEST_F(DeviceStepsTest, WithoutADeviceStepsAreTheHosts) {
  Count("samples", 3);
  const std::vector<StepStages> steps = Take(0, 1);
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_THAT(steps[1].spans, ElementsAre(Span(Stage::kForward, 100)));
  EXPECT_FALSE(steps_.has_times());
}

TEST_F(DeviceStepsTest, StepsWaitForTheDevicesTimesAndFollowEachOtherAsItDidThem) {
  Count("device_times", 2);
  EXPECT_THAT(Numbers(Take(0, 3)), ElementsAre(0, 1));
  EXPECT_THAT(Take(4, 4), IsEmpty());
  CountStep(2,
            {{"input", 10}, {"forward", 90}, {"forward", 50}, {"comm", 0}, {"comm", 20}, {"comm", 30}, {"custom", 5}});
  CountStep(3, {{"backward", 40}});
  const std::vector<StepStages> steps = Take(5, 5);
  ASSERT_THAT(Numbers(steps), ElementsAre(2, 3));
  // Each wait is a meeting of its own, and lasts some time.
  EXPECT_THAT(steps[0].spans,
              ElementsAre(Span(Stage::kInput, 10), Span(Stage::kForward, 140), Span(Stage::kCommunication, 20),
                          Span(Stage::kCommunication, 30), Span(Stage::kOther, 5)));
  EXPECT_EQ(steps[0].start_ns, 200);
  EXPECT_EQ(steps[0].duration_ns, 205);
  EXPECT_EQ(steps[1].start_ns, 405);  // The host began with it at 300.
  EXPECT_EQ(steps[1].duration_ns, 40);
  EXPECT_TRUE(steps_.has_times());
}

TEST_F(DeviceStepsTest, AStepOfWhichTimesWereLostIsLeftOut) {
  CountStep(0, {{"forward", 100}});
  Count("device_step", 1);
  Count("device_stage/forward", 70);
  Count("device_step_end", 2);  // One of them was overwritten.
  Count("device_stage/forward", 70);
  Count("device_step_end", 1);  // Where its begin was.
  Count("device_step", 2);
  CountStep(3, {{"forward", 100}});
  EXPECT_THAT(Numbers(Take(0, 4)), ElementsAre(0, 3));
}

TEST_F(DeviceStepsTest, WhereTheDevicesTimesEndTheHostsGoOn) {
  Count("device_times", 0);
  CountStep(0, {{"forward", 450}});
  EXPECT_THAT(Numbers(Take(0, 3)), ElementsAre(0));
  Count("device_times", -1);
  const std::vector<StepStages> steps = Take(4, 5);
  ASSERT_THAT(Numbers(steps), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(steps[0].start_ns, 450);  // No step begins before the one before it has ended.
  EXPECT_EQ(steps[4].start_ns, 850);
}

TEST_F(DeviceStepsTest, ImpossibleTimesAreNone) {
  Count("device_times", 0);
  for (const double value : {-5.0, 1e30, 1152921504606846976.0}) {
    CountStep(0, {{"forward", value}, {"backward", 1152921504606846976.0}});
  }
  CountStep(1, {{"forward", 100}});
  EXPECT_THAT(Numbers(Take(0, 1)), ElementsAre(1));
}

TEST_F(DeviceStepsTest, NotMoreWaitThanAreKept) {
  Count("device_times", 0);
  constexpr int64_t kMost = 1 << 16;
  EXPECT_THAT(Take(0, kMost + 9), IsEmpty());
  CountStep(kMost, {{"forward", 100}});
  EXPECT_THAT(Numbers(Take(kMost + 10, kMost + 10)), ElementsAre(kMost));
}

}  // namespace
}  // namespace lockstep::ingest::span_follow
