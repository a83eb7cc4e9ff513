#include "ingest/stage_files/stage_summary.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_folder.h"

namespace lockstep::ingest {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr const char* kJob = R"({"world_size":2,"workload":{"model":"gpt2"},"exit_status":0})";
constexpr const char* kWindow = R"({"first_step":0,"last_step":1,"step_count":2,"ns":30,
  "frontier_ns":[1,2,3,4,5,6,7,1,1,0]})";

std::string SummaryText(const std::string& job, const std::string& windows,
                        const std::string& steps = R"({"step":0,"ns":10},{"step":1,"ns":20})") {
  return fmt::format(
      R"({{"schema":"lockstep.stages/1","partial":false,"data":{{"verdict":{{"sentence":"Even."}},"job":{},
      "ranks":[{{"rank":0,"ended_in_order":true}},{{"rank":1,"ended_in_order":false}}],"steps":[{}],"windows":[{}],
      "memory":{{"ranks":[{{"rank":0,"resident":{{"peak_bytes":5}},"allocated":null,"peak_allocated_bytes":9}},
      {{"rank":1,"resident":{{"peak_bytes":7}},"reserved":null}}]}}}},"ledger":[]}})",
      job, steps, windows);
}

std::string ErrorOf(const std::string& json) {
  const auto summary = ParseStageSummary(json, "summary.json");
  return summary ? "" : summary.error().ToString();
}

TEST(StageSummaryTest, WhatRunsAreComparedByIsRead) {
  const auto summary = ParseStageSummary(SummaryText(kJob, kWindow), "summary.json");
  ASSERT_TRUE(summary) << summary.error().ToString();
  EXPECT_EQ(summary->world_size, 2);
  EXPECT_THAT(summary->facts.workload, ElementsAre(Pair("model", "gpt2")));
  EXPECT_EQ(summary->facts.exit_status, 0);
  EXPECT_THAT(summary->ranks, ElementsAre(0, 1));
  EXPECT_THAT(summary->running_ranks, ElementsAre(1));
  EXPECT_EQ(summary->verdict, "Even.");
  ASSERT_THAT(summary->steps, SizeIs(2));
  EXPECT_EQ(summary->steps[1].ns, 20);
  ASSERT_THAT(summary->windows, SizeIs(1));
  EXPECT_EQ(At(summary->windows[0].frontier_ns, model::Stage::kForward), 3);
  EXPECT_EQ(summary->resident_bytes, 7);
  EXPECT_EQ(summary->allocated_bytes, 9) << "between samples, too";
  EXPECT_FALSE(summary->reserved_bytes);
}

TEST(StageSummaryTest, OfAnEarlierVersionTheWorldIsTheRanks) {
  const auto summary = ParseStageSummary(SummaryText("null", kWindow), "summary.json");
  ASSERT_TRUE(summary) << summary.error().ToString();
  EXPECT_EQ(summary->world_size, 2);
  EXPECT_THAT(summary->facts.workload, IsEmpty());
  EXPECT_FALSE(summary->facts.exit_status);
}

TEST(StageSummaryTest, AnErrorSaysWhatAndWhere) {
  EXPECT_THAT(ErrorOf("{"), HasSubstr("summary.json: byte 1"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("the document is not an object"));
  EXPECT_THAT(ErrorOf(R"({"schema":"lockstep.analyze/1"})"),
              AllOf(HasSubstr("lockstep.stages/1"), HasSubstr("it is \"lockstep.analyze/1\"")));
  EXPECT_THAT(ErrorOf(R"({"schema":"lockstep.stages/1"})"), HasSubstr("data is missing"));
  EXPECT_THAT(ErrorOf(R"({"schema":"lockstep.stages/1","data":{"verdict":{}}})"), HasSubstr("data.ranks is missing"));
  const std::string window = kWindow;
  EXPECT_THAT(ErrorOf(SummaryText(kJob, window + "," + window)),
              HasSubstr("data.windows[1].first_step lies in the window before it"));
  EXPECT_THAT(ErrorOf(SummaryText(kJob, R"({"first_step":5,"last_step":4,"step_count":1,"ns":1})")),
              HasSubstr("data.windows[0].last_step is 4, outside 5 .."));
  EXPECT_THAT(ErrorOf(SummaryText(kJob, R"({"first_step":0,"last_step":1,"step_count":0,"ns":1})")),
              HasSubstr("data.windows[0].step_count is 0"));
  EXPECT_THAT(ErrorOf(SummaryText(kJob, R"({"first_step":0,"last_step":0,"step_count":1,"ns":1,"frontier_ns":[1]})")),
              HasSubstr("data.windows[0].frontier_ns: expected 10 stages"));
  EXPECT_THAT(
      ErrorOf(SummaryText(kJob, R"({"first_step":0,"last_step":0,"step_count":1,"ns":1,"frontier_ns":[1,-2]})")),
      HasSubstr("data.windows[0].frontier_ns[1] is no length of time"));
  EXPECT_THAT(ErrorOf(SummaryText(kJob, kWindow, R"({"step":3,"ns":1},{"step":3,"ns":1})")),
              HasSubstr("data.steps[1].step is not above the step before it"));
}

TEST(StageSummaryTest, AWorkloadIsTextsUnderKeys) {
  EXPECT_THAT(ErrorOf(SummaryText(R"({"workload":{"batch":8}})", kWindow)),
              HasSubstr("data.job.workload.batch is not a text"));
  EXPECT_THAT(ErrorOf(SummaryText(R"({"workload":{"a b":"8"}})", kWindow)), HasSubstr("is no key of a workload"));
  EXPECT_THAT(ErrorOf(SummaryText(R"({"workload":{"a":"8","a":"9"}})", kWindow)), HasSubstr("a is there twice"));
  EXPECT_THAT(ErrorOf(SummaryText(R"({"workload":[]})", kWindow)), HasSubstr("data.job.workload is not an object"));
  const auto workload = ParseWorkload(R"({"model":"gpt2"})", "stages_workload.json");
  ASSERT_TRUE(workload);
  EXPECT_THAT(*workload, ElementsAre(Pair("model", "gpt2")));
  EXPECT_FALSE(ParseWorkload("[1]", "stages_workload.json"));
}

TEST(StageSummaryTest, AFolderWithTracesIsNone) {
  const TemporaryFolder scratch;
  ASSERT_TRUE(scratch.made());
  const std::string& folder = scratch.path();
  EXPECT_FALSE(IsStageSummary(folder));
  EXPECT_FALSE(IsStageSummary(folder + "/absent"));
  std::ofstream(folder + "/summary.json") << SummaryText(kJob, kWindow);
  std::ofstream(folder + "/a.pid1.spans") << "";
  EXPECT_TRUE(IsStageSummary(folder));
  EXPECT_TRUE(IsStageSummary(folder + "/summary.json"));
  EXPECT_FALSE(IsStageSummary(folder + "/a.pid1.spans"));
  EXPECT_TRUE(ReadStageSummary(folder));
  std::ofstream(folder + "/rank0.pt.trace.json.gz") << "";
  EXPECT_FALSE(IsStageSummary(folder));
  EXPECT_TRUE(IsStageSummary(folder + "/summary.json"));
  const auto missing = ReadStageSummary(folder + "/absent");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace lockstep::ingest
