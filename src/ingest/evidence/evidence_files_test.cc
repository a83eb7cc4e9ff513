#include "ingest/evidence/evidence_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/testing/checkout.h"
#include "ingest/evidence/evidence_names.h"
#include "ingest/evidence/ranks_of_names.h"
#include "model/evidence/inspected_process.h"

namespace lockstep::ingest {
namespace {

namespace fs = std::filesystem;
using evidence::JobEvidence;

/// A folder of its own that goes with the test.
class EvidenceFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "evidence_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& bytes) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  /// A dump in JSON with one group of all and `count` collectives, the first created at `first_ns`.
  static std::string Dump(int world, int count, int64_t first_ns) {
    std::string ranks;
    for (int r = 0; r < world; ++r) ranks += (r > 0 ? ", " : "") + std::to_string(r);
    std::string entries;
    for (int i = 0; i < count; ++i) {
      entries +=
          (i > 0 ? "," : "") + std::string("{\"record_id\":") + std::to_string(i) +
          ",\"pg_id\":0,\"process_group\":[\"0\",\"default_pg\"],\"collective_seq_id\":" + std::to_string(i + 1) +
          ",\"profiling_name\":\"nccl:all_reduce\",\"time_created_ns\":" + std::to_string(first_ns + i) +
          ",\"state\":\"completed\",\"retired\":true,\"is_p2p\":false}";
    }
    return "{\"version\":\"2.10\",\"pg_config\":{\"0\":{\"name\":\"0\",\"desc\":\"default_pg\",\"ranks\":\"[" + ranks +
           "]\"}},\"pg_status\":{},\"entries\":[" + entries + "]}";
  }
  Result<JobEvidence> Read(unsigned threads = 2) const {
    return ReadEvidence({folder_.string()}, {.thread_count = threads});
  }

  fs::path folder_;
};

constexpr const char* kStacks =
    "Thread 0x00007fd53e51a200 (most recent call first):\n  File \"t.py\", line 5 in f\n  File \"t.py\", line 9 in "
    "<module>\n";

TEST_F(EvidenceFilesTest, RanksComeFromNamesAndMissingOnesAreNoted) {
  Write("trace_0.json", Dump(3, 2, 1'000));
  Write("trace_2.json", Dump(3, 2, 1'000));
  Write("stacks_1.txt", kStacks);
  Write("README.md", "words");
  Write("truth.json", "{\"culprits\":[1]}");
  const auto job = Read();
  ASSERT_TRUE(job) << job.error().ToString();
  EXPECT_EQ(job->world_size, 3);
  ASSERT_EQ(job->ranks.size(), 3U);
  EXPECT_TRUE(job->ranks[0].record);
  EXPECT_FALSE(job->ranks[1].record);
  ASSERT_EQ(job->ranks[1].stacks.size(), 1U);
  ASSERT_EQ(job->ranks[1].missing.size(), 1U);
  EXPECT_EQ(job->ranks[1].missing[0].what, "flight_recorder");
  EXPECT_EQ(job->problems.size(), 0U);
}

TEST_F(EvidenceFilesTest, TheNewestOfSeveralDumpsCountsAndTheOtherIsNoted) {
  Write("old_rank_0.json", Dump(1, 2, 1'000));
  Write("new_rank_0.json", Dump(1, 5, 2'000));
  const auto job = Read();
  ASSERT_TRUE(job) << job.error().ToString();
  ASSERT_EQ(job->ranks.size(), 1U);
  EXPECT_EQ(job->ranks[0].record->entries.size(), 5U);
  ASSERT_EQ(job->problems.size(), 1U);
  EXPECT_TRUE(job->problems[0].is_note);
}

TEST_F(EvidenceFilesTest, TwoJobsBelowOnePathAreRefused) {
  Write("a/trace_0.json", Dump(1, 2, 1'000));
  Write("b/trace_0.json", Dump(1, 2, 9'000));
  const auto job = Read();
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(EvidenceFilesTest, OneFolderForEachHostIsOneJob) {
  Write("a/trace_0.json", Dump(2, 2, 1'000));
  Write("b/trace_1.json", Dump(2, 2, 9'000));
  const auto job = Read();
  ASSERT_TRUE(job) << job.error().ToString();
  EXPECT_EQ(job->ranks.size(), 2U);
}

TEST_F(EvidenceFilesTest, ABrokenDumpIsAProblemAndTheOthersAreUsed) {
  Write("trace_0.json", Dump(2, 2, 1'000));
  Write("trace_1", std::string("\x80\x02"
                               "cos\nsystem\n.",
                               14));
  const auto job = Read();
  ASSERT_TRUE(job) << job.error().ToString();
  ASSERT_EQ(job->problems.size(), 1U);
  EXPECT_EQ(job->problems[0].rank, 1);
  EXPECT_TRUE(job->ranks[0].record);
  EXPECT_FALSE(job->ranks[1].record);
}

TEST_F(EvidenceFilesTest, ADumpWithoutARankInItsNameIsAProblem) {
  Write("trace.json", Dump(2, 2, 1'000));
  const auto job = Read();
  ASSERT_TRUE(job);
  EXPECT_EQ(job->problems.size(), 1U);
}

TEST_F(EvidenceFilesTest, NothingThatIsEvidenceIsAnError) {
  Write("notes.txt", "just words\n");
  const auto job = Read();
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ReadEvidence({(folder_ / "absent").string()}).error().code, ErrorCode::kNotFound);
}

TEST_F(EvidenceFilesTest, AnEvidenceFolderGivesJobProcessesAndWhatIsMissing) {
  Write("evidence.json", R"({"schema":"lockstep.evidence/1","job":{"kind":"slurm","id":"42"},"collected_unix_ns":77,
    "world_size":2,"nodes":[{"host":"b","problem":"cannot be reached"}],"processes":[],
    "missing":[{"rank":1,"host":"b","what":"process_state","reason":"r","remedy":"m"}]})");
  evidence::InspectedProcess process;
  process.rank = 0;
  process.host = "a";
  process.pid = 4711;
  process.world_size = 2;
  process.collected_unix_ns = 76;
  process.stacks.resize(1);
  process.stacks[0].is_main = true;
  process.stacks[0].python = {{"f", "t.py", 3}};
  Write("rank0-a-pid4711/process.json", evidence::WriteInspectedProcess(process, false));
  Write("rank0-a-pid4711/flight_recorder.json", Dump(2, 2, 1'000));
  const auto job = Read();
  ASSERT_TRUE(job) << job.error().ToString();
  EXPECT_TRUE(job->live);
  EXPECT_EQ(job->job_id, "42");
  EXPECT_EQ(job->collected_unix_ns, 77);
  ASSERT_EQ(job->missing.size(), 2U);
  EXPECT_EQ(job->missing[0].what, "node");
  ASSERT_EQ(job->ranks.size(), 2U);
  EXPECT_EQ(job->ranks[0].host, "a");
  EXPECT_EQ(job->ranks[0].liveness, evidence::Liveness::kRunning);
  EXPECT_TRUE(job->ranks[0].record);
  EXPECT_EQ(job->ranks[0].stacks.size(), 1U);
}

TEST_F(EvidenceFilesTest, ARecordIsAsOldAsItsMakerOrElseItsFileSays) {
  evidence::InspectedProcess process;
  process.rank = 0;
  process.world_size = 4;
  process.collected_unix_ns = 5'000'000'000;
  process.record_unix_ns = 6'000'000'000;
  Write("rank0-a-pid4711/process.json", evidence::WriteInspectedProcess(process, false));
  Write("rank0-a-pid4711/flight_recorder.json", Dump(4, 2, 1'000));
  Write("trace_1.json", Dump(4, 2, 1'000));
  Write("trace_2.json", Dump(4, 2, 1'000));
  const timespec fresh[] = {{.tv_sec = 7, .tv_nsec = 8}, {.tv_sec = 7, .tv_nsec = 8}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ / "trace_1.json").c_str(), fresh, 0), 0);
  // Before 1970: earlier than what the record tells of.
  const timespec stale[] = {{.tv_sec = -9, .tv_nsec = 0}, {.tv_sec = -9, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ / "trace_2.json").c_str(), stale, 0), 0);
  const auto job = Read();
  ASSERT_TRUE(job) << job.error().ToString();
  ASSERT_EQ(job->ranks.size(), 4U);
  EXPECT_EQ(job->ranks[0].record_unix_ns, 6'000'000'000);
  EXPECT_EQ(job->ranks[1].record_unix_ns, 7'000'000'008);
  EXPECT_EQ(job->ranks[2].record_unix_ns, std::nullopt);
  EXPECT_EQ(job->ranks[3].record_unix_ns, std::nullopt);
}

TEST_F(EvidenceFilesTest, WhatANeighbourSaysOfAProcessLiesBesideDumpsOfOtherRanks) {
  for (const int32_t rank : {0, 2}) Write("trace_" + std::to_string(rank) + ".json", Dump(3, 2, 1'000));
  Write("process_1.json", R"({"schema":"lockstep.inspection/1","pid":7,"host":"a","rank":1,"liveness":"running",
    "collected_unix_ns":5,"state":{"state":"T"}})");
  const auto job = Read();
  ASSERT_TRUE(job) << job.error().ToString();
  ASSERT_EQ(job->ranks.size(), 3U);
  EXPECT_TRUE(job->ranks[0].record && job->ranks[2].record);
  EXPECT_FALSE(job->ranks[1].record);
  ASSERT_TRUE(job->ranks[1].process);
  EXPECT_EQ(job->ranks[1].process->state, 'T');
}

TEST_F(EvidenceFilesTest, TheNumberOfThreadsChangesNothing) {
  for (int r = 0; r < 20; ++r) Write("trace_" + std::to_string(r) + ".json", Dump(20, 3, 1'000 + r));
  const auto one = Read(1);
  const auto many = Read(8);
  ASSERT_TRUE(one && many);
  ASSERT_EQ(one->ranks.size(), many->ranks.size());
  for (size_t i = 0; i < one->ranks.size(); ++i) {
    EXPECT_EQ(one->ranks[i].record_file, many->ranks[i].record_file);
  }
}

TEST_F(EvidenceFilesTest, NamesOfAFolderTellTogetherWhichNumberIsTheRank) {
  for (int r = 0; r < 4; ++r) {
    Write("gpu-rank0-node" + std::to_string(r / 2) + "-flight" + std::to_string(r) + "_v2.json", Dump(4, 2, 1'000));
    Write("rank0-a_" + std::to_string(r) + ".log", "Traceback (most recent call last):\nValueError: no\n");
  }
  const auto job = Read();
  ASSERT_TRUE(job) << job.error().ToString();
  ASSERT_EQ(job->ranks.size(), 4U);
  for (const auto& rank : job->ranks) {
    EXPECT_TRUE(rank.record) << rank.rank;
    EXPECT_THAT(rank.log_file, ::testing::EndsWith("a_" + std::to_string(rank.rank) + ".log"));
  }
}

TEST_F(EvidenceFilesTest, OneFileMayHoldTheDumpsOfAllRanks) {
  Write("all_of_job_17.json", "{\"0\":" + Dump(3, 2, 1'000) + ",\"2\":" + Dump(3, 1, 1'000) + "}");
  const auto job = Read();
  ASSERT_TRUE(job) << job.error().ToString();
  ASSERT_EQ(job->ranks.size(), 3U);
  EXPECT_TRUE(job->ranks[0].record && !job->ranks[1].record && job->ranks[2].record);
  EXPECT_EQ(job->ranks[2].record_file, job->ranks[0].record_file);
}

TEST(EvidenceNamesTest, TheNumberThatDiffersIsTheRank) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(RanksOfNames(Names{"rank0-a_trace_3", "rank0-b_trace_5"}), (std::vector<int32_t>{3, 5}));
  EXPECT_EQ(RanksOfNames(Names{"v2-rank0.r1", "v2-rank1.r1"}), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(RanksOfNames(Names{"trace_1", "trace_1.json.gz", "trace_0"}), (std::vector<int32_t>{1, 1, 0}));
  // Neither is: both occur twice.
  EXPECT_EQ(RanksOfNames(Names{"node0_local_rank0", "node0_local_rank1", "node1_local_rank0"}), std::nullopt);
  EXPECT_EQ(RanksOfNames(Names{"flight", "trace"}), std::nullopt);
}

TEST(EvidenceNamesTest, PathsTellRanks) {
  EXPECT_EQ(RankOfEvidencePath("d/log_3.txt"), 3);
  EXPECT_EQ(RankOfEvidencePath("rank12.err"), 12);
  EXPECT_EQ(RankOfEvidencePath("stdout.3"), 3);
  EXPECT_EQ(RankOfEvidencePath("run/attempt_0/5/stderr.log"), 5);
  EXPECT_EQ(RankOfEvidencePath("d/rank3-node-a-pid4711/log_tail.txt"), 3);
  EXPECT_EQ(RankOfEvidencePath("slurm-4711.out"), std::nullopt);
  EXPECT_EQ(RankOfEvidencePath("nccl.node-a.20978.log"), std::nullopt);
  EXPECT_EQ(RankOfEvidencePath("launcher.log"), std::nullopt);
  EXPECT_EQ(RankOfEvidencePath("node1.log"), std::nullopt);
}

TEST(EvidenceNamesTest, ProcessFoldersTellRankHostAndPid) {
  const auto name = ReadProcessFolderName("x/rank3-node-a-pid4711");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->rank, 3);
  EXPECT_EQ(name->host, "node-a");
  EXPECT_EQ(name->pid, 4711);
  EXPECT_FALSE(ReadProcessFolderName("rank3-node-a"));
  EXPECT_FALSE(ReadProcessFolderName("rank3-node-a-pidx"));
}

TEST(EvidenceNamesTest, EverySharedSetIsReadWithoutAProblem) {
  const std::filesystem::path root = SharedData();
  if (!fs::exists(root / "flight_recorder")) GTEST_SKIP() << "the shared data are absent";
  int sets = 0;
  for (const char* origin : {"gloo_torch_2_14", "nvrx_megatron_16rank"}) {
    for (const auto& folder : fs::directory_iterator(root / "flight_recorder" / origin)) {
      const auto job = ReadEvidence({folder.path().string()});
      ASSERT_TRUE(job) << folder.path() << job.error().ToString();
      for (const auto& problem : job->problems) ADD_FAILURE() << problem.file << ": " << problem.message;
      EXPECT_GE(job->ranks.size(), 2U);
      ++sets;
    }
  }
  EXPECT_GT(sets, 10);
}

}  // namespace
}  // namespace lockstep::ingest
