#include "inside/launch/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "inside/launch/manifest.h"

namespace lockstep::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kLongAgo_ns = 1;

class OutcomeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "lockstep-outcome-" + std::string(6, 'X');
    folder_ = ::mkdtemp(name.data());  // Fills the six places in.
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name) { std::ofstream(folder_ / name) << "x"; }
  Outcome Find(const NsysRequest& request = {}, int64_t start_unix_ns = kLongAgo_ns) {
    return FindNsysOutcome((folder_ / "nsys.rank1").string(), request, "/opt/nsys", start_unix_ns);
  }
  std::filesystem::path folder_;
};

TEST_F(OutcomeTest, ReportsOfThisRankAreFound) {
  for (const char* name : {"nsys.rank1.nsys-rep", "nsys.rank1.sqlite", "nsys.rank10.nsys-rep", "nsys.rank1.launch",
                           "nsys.rank1.x.nsys-rep"})
    Write(name);
  const Outcome outcome = Find({.exports_sqlite = true});
  EXPECT_THAT(outcome.files, ElementsAre("nsys.rank1.nsys-rep", "nsys.rank1.sqlite"));
  EXPECT_THAT(outcome.problems, IsEmpty());
}

TEST_F(OutcomeTest, SeveralRangesAreSeveralReports) {
  Write("nsys.rank1.1.nsys-rep");
  Write("nsys.rank1.2.nsys-rep");
  EXPECT_THAT(Find({.range = CaptureRange::kCudaProfiler, .range_count = 2}).files,
              ElementsAre("nsys.rank1.1.nsys-rep", "nsys.rank1.2.nsys-rep"));
}

TEST_F(OutcomeTest, ARangeThatNeverOpenedIsSaid) {
  EXPECT_THAT(Find({.range = CaptureRange::kCudaProfiler}).problems,
              ElementsAre(HasSubstr("never called cudaProfilerStart")));
  EXPECT_THAT(Find({.range = CaptureRange::kNvtx, .nvtx_range = "step 5"}).problems,
              ElementsAre(HasSubstr("no NVTX range 'step 5' was opened")));
}

TEST_F(OutcomeTest, ARawRecordingMeansThatTheHostPartIsMissing) {
  Write("nsys.rank1.qdstrm");
  const Outcome outcome = Find();
  EXPECT_THAT(outcome.files, ElementsAre("nsys.rank1.qdstrm"));
  EXPECT_THAT(outcome.problems, ElementsAre(HasSubstr("QdstrmImporter -i nsys.rank1.qdstrm")));
}

TEST_F(OutcomeTest, OtherReasonsHaveTheirWords) {
  EXPECT_THAT(Find({.delay_s = 600}).problems, ElementsAre(HasSubstr("600 s of delay")));
  EXPECT_THAT(Find().problems, ElementsAre(HasSubstr("TMPDIR")));
  Write("nsys.rank1.nsys-rep");
  EXPECT_THAT(Find({.exports_sqlite = true}).problems, ElementsAre(HasSubstr("file locks")));
}

TEST_F(OutcomeTest, FilesFromBeforeAreNotThisRuns) {
  Write("nsys.rank1.nsys-rep");
  const int64_t tomorrow = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               (std::chrono::system_clock::now() + std::chrono::hours(24)).time_since_epoch())
                               .count();
  EXPECT_THAT(Find({}, tomorrow).files, IsEmpty());
}

TEST_F(OutcomeTest, TheManifestIsOneLineAndReplacedWhole) {
  ManifestEntry entry{.identity = {.launcher = Launcher::kSlurm, .rank = 3, .world_size = 8, .local_rank = 1},
                      .host = "n002",
                      .pid = 7,
                      .tool = "nsys",
                      .tool_version = "2023.4.4",
                      .start_unix_ns = 1'795'387'857'000'000'001,
                      .command = "python \"a\nb\""};
  const std::string path = (folder_ / "nsys.rank3.launch").string();
  ASSERT_TRUE(WriteManifest(path, entry));
  entry.exit_code = 5;
  entry.files = {"nsys.rank3.nsys-rep"};
  ASSERT_TRUE(WriteManifest(path, entry));
  std::ifstream file(path);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_EQ(
      line,
      R"({"format":"lockstep-launch","version":1,"rank":3,"world_size":8,"local_rank":1,"local_size":null,"node":null,"restart":0,"launcher":"srun","job":null,"host":"n002","pid":7,"visible_devices":null,"tool":"nsys","tool_version":"2023.4.4","start_utc":"2026-11-22T22:50:57.000000001Z","start_unix_ns":1795387857000000001,"end_unix_ns":null,"exit_code":5,"command":"python \"a\nb\"","files":["nsys.rank3.nsys-rep"]})");
  EXPECT_FALSE(std::getline(file, line));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  EXPECT_EQ(WriteManifest((folder_ / "no/such").string(), entry).error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace lockstep::launch
