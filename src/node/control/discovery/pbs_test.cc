#include "node/control/discovery/pbs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "node/control/discovery/recorded_data.h"

namespace lockstep::control {
namespace {

using recorded::Hosts;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

#define RECORDED(name, file)                                                                    \
  const auto name##_file = recorded::File(file);                                                \
  if (!name##_file) GTEST_SKIP() << "recorded scheduler outputs are absent; set LOCKSTEP_DATA"; \
  const std::string& name = *name##_file

TEST(PbsTest, ExecHostGivesEachHostOnce) {
  EXPECT_THAT(ParseExecHost("n001/0*2+n002/0*2+n001/1"), ElementsAre("n001", "n002"));
  EXPECT_THAT(ParseExecHost("a.b.c:15002/0*2+d/1"), ElementsAre("a.b.c", "d"));
  EXPECT_THAT(ParseExecHost(""), IsEmpty());
  EXPECT_THAT(ParseExecHost("++/0+"), IsEmpty());
}

TEST(PbsTest, RunningJobIsFoundWithAndWithoutItsServer) {
  RECORDED(json, "pbs/qstat-job.json");
  for (const char* id : {"11", "11.head"}) {
    const auto job = SelectPbsJob(id, json);
    ASSERT_TRUE(job) << job.error().ToString();
    EXPECT_EQ(job->kind, JobKind::kPbs);
    EXPECT_EQ(job->job_id, "11.head");
    EXPECT_EQ(job->state, "running");
    EXPECT_THAT(Hosts(*job), ElementsAre("n001", "n002", "n003", "n004"));
  }
  EXPECT_EQ(SelectPbsJob("1", json).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(SelectPbsJob("11.other", json).error().code, ErrorCode::kNotFound);
}

TEST(PbsTest, ValuesThatBecameNumbersDoNotMatter) {
  RECORDED(json, "pbs/qstat-odd-values.json");
  const auto job = SelectPbsJob("12", json);
  ASSERT_TRUE(job) << job.error().ToString();
  EXPECT_THAT(Hosts(*job), ElementsAre("n001", "n002", "n003"));
}

TEST(PbsTest, AnotherSitesJobIsRead) {
  RECORDED(json, "pbs/public-metacentrum-qstat-job.json");
  const auto job = SelectPbsJob("12860476", json);
  ASSERT_TRUE(job) << job.error().ToString();
  EXPECT_EQ(job->job_id, "12860476.meta-pbs.metacentrum.cz");
  EXPECT_THAT(Hosts(*job), ElementsAre("charon24", "charon21"));
}

TEST(PbsTest, ArrayIsAskedWhichElement) {
  RECORDED(json, "pbs/qstat-array.json");
  const auto whole = SelectPbsJob("13[]", json);
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(whole.error().message, HasSubstr("13[3].head"));
  const auto element = SelectPbsJob("13[4]", json);
  ASSERT_TRUE(element) << element.error().ToString();
  EXPECT_EQ(element->job_id, "13[4].head");
  EXPECT_THAT(Hosts(*element), ElementsAre("n001"));
}

TEST(PbsTest, QueuedAndFinishedJobsSayTheirState) {
  RECORDED(queued, "pbs/qstat-queued.json");
  const auto waits = SelectPbsJob("14", queued);
  ASSERT_FALSE(waits);
  EXPECT_EQ(waits.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(waits.error().message, HasSubstr("it is queued"));
  RECORDED(finished, "pbs/qstat-finished.json");
  const auto ended = SelectPbsJob("15", finished);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(ended.error().message, HasSubstr("it is finished"));
}

TEST(PbsTest, UnknownJobIsNotFound) {
  const auto job = SelectPbsJob("99999", R"({"timestamp": 1, "pbs_server": "head"})");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kNotFound);
}

TEST(PbsTest, DamagedAnswersAreErrors) {
  EXPECT_EQ(SelectPbsJob("1", "").error().code, ErrorCode::kCorruptData);
  EXPECT_EQ(SelectPbsJob("1", R"({"Jobs": {)").error().code, ErrorCode::kCorruptData);
  EXPECT_EQ(SelectPbsJob("1", R"({"Jobs": 7})").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(SelectPbsJob("1", R"({"Jobs": {"1.a": 7}})").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(SelectPbsJob("1", R"({"Jobs": {"1.a": {"exec_host": [7], "job_state": []}}})").error().code,
            ErrorCode::kNotFound);
  EXPECT_FALSE(SelectPbsJob("1", std::string(1'000'000, '[')));
}

TEST(PbsTest, RefusesWhatIsNoId) {
  for (const char* id : {"", "-x", "abc", "1;2", "1 2", "[]"}) {
    EXPECT_EQ(SelectPbsJob(id, "{}").error().code, ErrorCode::kInvalidArgument) << id;
  }
}

}  // namespace
}  // namespace lockstep::control
