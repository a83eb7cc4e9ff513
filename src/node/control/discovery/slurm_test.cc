#include "node/control/discovery/slurm.h"

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
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Result<JobNodes> Select(const std::string& id, std::string_view output) {
  ASSIGN_OR_RETURN(const auto rows, ParseSqueue(output));
  return SelectSlurmJob(id, rows);
}

// squeue -t all -h -o '%i|%A|%T|%N|%r', seen on SLURM 22.05.
constexpr std::string_view kArray = "4_4|4|RUNNING|n001|None\n4_3|6|RUNNING|n002|None\n";
constexpr std::string_view kHet = "2+0|2|RUNNING|n001|None\n2+1|3|RUNNING|n[002-003]|None\n";

TEST(SlurmTest, PlainJobHasItsNodes) {
  const auto job = Select("11", "11|11|RUNNING|n[001-004]|None\n");
  ASSERT_TRUE(job) << job.error().ToString();
  EXPECT_EQ(job->kind, JobKind::kSlurm);
  EXPECT_EQ(job->job_id, "11");
  EXPECT_EQ(job->state, "RUNNING");
  EXPECT_THAT(Hosts(*job), ElementsAre("n001", "n002", "n003", "n004"));
}

TEST(SlurmTest, StepIsOfItsJob) {
  const auto job = Select("11.0", "11|11|RUNNING|n1|None\n");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->job_id, "11");
}

TEST(SlurmTest, ArrayElementHasTheNumberThatItsProcessesKnow) {
  const auto job = Select("4_3", "4_3|6|RUNNING|n002|None\n");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->job_id, "6");
  EXPECT_THAT(Hosts(*job), ElementsAre("n002"));
}

TEST(SlurmTest, ArrayOfSeveralIsAskedWhich) {
  const auto job = Select("4", kArray);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(job.error().message, HasSubstr("name one of 4_4, 4_3"));
  // One that runs beside others that wait or have ended is the one.
  const auto only =
      Select("4", "4_[5-7%2]|4|PENDING||JobArrayTaskLimit\n4_4|9|COMPLETED|n1|None\n4_3|6|RUNNING|n2|None\n");
  ASSERT_TRUE(only) << only.error().ToString();
  EXPECT_EQ(only->job_id, "6");
}

TEST(SlurmTest, PartsOfAHeterogeneousJobAreUnited) {
  const auto job = Select("2", kHet);
  ASSERT_TRUE(job) << job.error().ToString();
  EXPECT_EQ(job->job_id, "2");
  EXPECT_THAT(Hosts(*job), ElementsAre("n001", "n002", "n003"));
  EXPECT_EQ(job->nodes[0].het_group, 0);
  EXPECT_EQ(job->nodes[2].het_group, 1);
  const auto part = Select("2+1", kHet);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->job_id, "2");
  EXPECT_THAT(Hosts(*part), ElementsAre("n002", "n003"));
}

TEST(SlurmTest, WaitingEndedAndUnknownJobsAreToldApart) {
  const auto waits = Select("18", "18|18|PENDING||Resources\n");
  ASSERT_FALSE(waits);
  EXPECT_EQ(waits.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(waits.error().message, HasSubstr("no nodes yet: it is PENDING (Resources)"));
  const auto ended = Select("24", "24|24|FAILED|n[001-002]|NonZeroExitCode\n");
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(ended.error().message, HasSubstr("has ended (FAILED)"));
  const auto unknown = Select("99", "");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(unknown.error().message, HasSubstr("no job 99"));
}

TEST(SlurmTest, RefusesWhatIsNoId) {
  for (const char* id : {"", "abc", "12_", "_3", "12_3_4", "-1", "12;rm", "12 13", "--help"}) {
    const auto job = Select(id, "11|11|RUNNING|n1|None\n");
    ASSERT_FALSE(job) << id;
    EXPECT_EQ(job.error().code, ErrorCode::kInvalidArgument) << id;
  }
}

TEST(SlurmTest, AnswerOfAnotherFormIsCorrupt) {
  for (const char* output : {"11", "11|11|RUNNING", "|11|RUNNING|n1|None", "11|x|RUNNING|n1|None"}) {
    const auto rows = ParseSqueue(output);
    ASSERT_FALSE(rows) << output;
    EXPECT_EQ(rows.error().code, ErrorCode::kCorruptData);
  }
  const auto bars = ParseSqueue("11|11|PENDING||a|b\n");
  ASSERT_TRUE(bars);
  EXPECT_EQ(bars->front().reason, "a|b");
}

TEST(SlurmTest, ReadsRecordedLayouts) {
  const auto recording = recorded::File("slurm/sattach-layout.txt");
  if (!recording) GTEST_SKIP() << "recorded scheduler outputs are absent; set LOCKSTEP_DATA";
  EXPECT_THAT(ParseTaskLayout(recorded::Output(*recording, "sattach --layout 5.0")),
              UnorderedElementsAre(Pair("n001", ElementsAre(0, 3, 5, 6)), Pair("n002", ElementsAre(1, 4)),
                                   Pair("n003", ElementsAre(2))));
  EXPECT_THAT(ParseNumberedSteps("5.0\n5.batch\n5.extern\n5.1\n"), ElementsAre("5.0", "5.1"));
  EXPECT_THAT(ParseTaskLayout("Node ) task(s): (\nNode 0 (n1), 1 task(s): x"), IsEmpty());
}

TEST(SlurmTest, ReadsRecordedRows) {
  const auto recording = recorded::File("slurm/array-and-het.txt");
  if (!recording) GTEST_SKIP() << "recorded scheduler outputs are absent; set LOCKSTEP_DATA";
  // Recorded with one column fewer: "%i|%A|%N|%T".
  std::string rows;
  for (const char* line : {"13+0|13|n002|RUNNING", "13+1|14|n[003-004]|RUNNING"}) {
    EXPECT_THAT(recorded::Output(*recording, "squeue -j 13 -h -o %i|%A|%N|%T"), HasSubstr(line));
    const std::string text = line;
    const size_t last = text.rfind('|');
    const size_t nodes = text.rfind('|', last - 1);
    rows += text.substr(0, nodes) + text.substr(last) + text.substr(nodes, last - nodes) + "|None\n";
  }
  const auto job = Select("13", rows);
  ASSERT_TRUE(job) << job.error().ToString();
  EXPECT_THAT(Hosts(*job), ElementsAre("n002", "n003", "n004"));
}

}  // namespace
}  // namespace lockstep::control
