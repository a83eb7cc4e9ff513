#include <gmock/gmock.h>

#include <string>

#include "base/base64.h"
#include "node/control/api/stages.h"

namespace lockstep::control {
namespace {

using model::Stage;
using model::StepStages;
using ::testing::HasSubstr;
using ::testing::SizeIs;

StepStages SomeStep(int64_t number) {
  return {.number = number,
          .start_ns = 1'790'000'000'000'000'000 + number,
          .duration_ns = 61'000'003,
          .spans = {{Stage::kInput, 1'000'000}, {Stage::kForward, 60'000'000}, {Stage::kOther, 3}}};
}

TEST(PackedStepsTest, StepsGoThroughUnchanged) {
  std::string bytes;
  for (const int64_t number : {int64_t{-1}, int64_t{0}, INT64_MAX}) bytes += PackStep(SomeStep(number % 1000));
  const auto steps = UnpackSteps(bytes);
  ASSERT_TRUE(steps) << steps.error().ToString();
  ASSERT_THAT(*steps, SizeIs(3));
  const StepStages& last = steps->back();
  const StepStages expected = SomeStep(INT64_MAX % 1000);
  EXPECT_EQ(last.number, expected.number);
  EXPECT_EQ(last.start_ns, expected.start_ns);
  EXPECT_EQ(last.duration_ns, expected.duration_ns);
  ASSERT_THAT(last.spans, SizeIs(3));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(last.spans[i].stage, expected.spans[i].stage);
    EXPECT_EQ(last.spans[i].duration_ns, expected.spans[i].duration_ns);
  }
}

TEST(PackedStepsTest, WhomAWaitIsForGoesThroughUnchanged) {
  const StepStages step{.number = 4,
                        .duration_ns = 60,
                        .spans = {{Stage::kCommunication, 10},
                                  {Stage::kCommunication, 20, {.group = 1024, .is_pairwise = false}},
                                  {Stage::kCommunication, 25, {.group = 3, .is_pairwise = true}},
                                  {Stage::kCommunication, 5, {.group = 0, .is_pairwise = true}}}};
  const std::string bytes = PackStep(step);
  for (size_t size = 1; size < bytes.size(); ++size) EXPECT_FALSE(UnpackSteps(bytes.substr(0, size))) << size;
  const auto steps = UnpackSteps(bytes);
  ASSERT_TRUE(steps) << steps.error().ToString();
  ASSERT_THAT(steps->at(0).spans, SizeIs(4));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(steps->at(0).spans[i].stage, Stage::kCommunication);
    EXPECT_EQ(steps->at(0).spans[i].duration_ns, step.spans[i].duration_ns);
    EXPECT_EQ(steps->at(0).spans[i].waited_for.group, step.spans[i].waited_for.group);
    EXPECT_EQ(steps->at(0).spans[i].waited_for.is_pairwise, step.spans[i].waited_for.is_pairwise);
  }
  EXPECT_FALSE(UnpackSteps(std::string("\x02\x02\x01\x0f\x82\x10", 6))) << "no such group";
}

TEST(PackedStepsTest, AStepTakesFewBytes) { EXPECT_LE(PackStep(SomeStep(100'000)).size(), 25U); }

TEST(PackedStepsTest, TimesThatNoStepHasAreNotPacked) {
  for (const int64_t bad_ns : {int64_t{-1}, INT64_MAX, (int64_t{1} << 59) + 1}) {
    EXPECT_EQ(PackStep({.spans = {{Stage::kInput, 1}, {Stage::kOther, bad_ns}}}), "");
  }
}

TEST(PackedStepsTest, BytesThatAreCutOrWrongAreRefused) {
  const std::string bytes = PackStep(SomeStep(7));
  for (size_t size = 1; size < bytes.size(); ++size) EXPECT_FALSE(UnpackSteps(bytes.substr(0, size))) << size;
  EXPECT_FALSE(UnpackSteps(std::string("\x02\x02\x01\x0b", 4))) << "no such stage";
  EXPECT_FALSE(UnpackSteps(std::string("\x02\x02\xff\xff\xff\x7f", 6))) << "more spans than bytes";
  EXPECT_FALSE(UnpackSteps(std::string(12, '\xff'))) << "no number";
  std::string many;
  for (uint64_t i = 0; i <= kMostKeptSteps; ++i) many += PackStep({});
  EXPECT_FALSE(UnpackSteps(many));
}

TEST(StagesJsonTest, EveryFieldGoesThroughUnchanged) {
  const std::string text =
      R"({"host":"n1","now_unix_ns":30,"ranks":[{"job_id":"4711","user":"ada","rank":3,"world_size":8,"pid":42,)"
      R"("seen_step_count":900,"kept_step_count":512,"lost_record_count":2,"ended_in_order":true,)"
      R"("device_times":true,"hides_communication":true,"groups":["dp[0-6:2]","tp[6,7]"],"steps":")" +
      EncodeBase64(PackStep(SomeStep(899))) + R"("},)" +
      R"({"job_id":null,"user":null,"rank":0,"world_size":null,"pid":1,"seen_step_count":0,"kept_step_count":0,)"
      R"("lost_record_count":0,"ended_in_order":false,"device_times":false,"hides_communication":false,"groups":[],"steps":null}]})";
  const Result<NodeStages> stages = ReadNodeStages(text);
  ASSERT_TRUE(stages) << stages.error().ToString();
  EXPECT_EQ(ToJson(*stages), text);
  EXPECT_EQ(stages->ranks[0].steps, PackStep(SomeStep(899)));
}

TEST(StagesJsonTest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> texts[] = {
      {"[]", "document is not an object"},
      {R"({"ranks":3})", "ranks"},
      {R"({"ranks":[{"steps":"%"}]})", "ranks[0].steps is not base64"},
      {R"({"ranks":[{"rank":-1}]})", "ranks[0].rank"},
      {R"({"ranks":[{"world_size":0}]})", "ranks[0].world_size"},
  };
  for (const auto& [text, said] : texts) {
    const Result<NodeStages> stages = ReadNodeStages(text);
    ASSERT_FALSE(stages) << text;
    EXPECT_THAT(stages.error().message, HasSubstr(said)) << text;
  }
}

TEST(StagesQueryTest, APathIsReadAsItWasWritten) {
  const std::string path = StagesPath({.job_id = "12 3&=%", .last_steps = 5});
  EXPECT_EQ(path, "/api/v1/stages?job=12%203%26%3D%25&last=5");
  const Result<StagesQuery> query = ReadStagesQuery(path.substr(path.find('?') + 1));
  ASSERT_TRUE(query);
  EXPECT_EQ(query->job_id, "12 3&=%");
  EXPECT_EQ(query->last_steps, 5U);
  EXPECT_EQ(StagesPath({}), "/api/v1/stages");
  EXPECT_EQ(StagesPath({.last_steps = 9}), "/api/v1/stages?last=9");
  for (const char* text : {"last=0", "last=1025", "last=x", "last=", "last=-1", "job=%4", "what=1"}) {
    EXPECT_FALSE(ReadStagesQuery(text)) << text;
  }
}

}  // namespace
}  // namespace lockstep::control
