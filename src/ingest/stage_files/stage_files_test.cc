#include "ingest/stage_files/stage_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <lockstep/trace.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_folder.h"

namespace lockstep::ingest {
namespace {

using model::Stage;
using model::StepStages;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Processes that record into one folder, as ranks do.
class StageFilesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(scratch_.made()); }

  /// A rank of two records what `record` does, and ends in order unless it is killed.
  void Rank(int rank, const std::function<void()>& record, bool is_killed = false) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("RANK", std::to_string(rank).c_str(), 1);
      ::setenv("WORLD_SIZE", "2", 1);
      ::setenv("LOCAL_RANK", "0", 1);
      lockstep_trace_start(scratch_.path().c_str());
      record();
      if (is_killed) ::kill(::getpid(), SIGKILL);
      ::exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
  }
  static void TwoSteps() {
    for (int i = 0; i < 2; ++i) {
      lockstep_step();
      LOCKSTEP_SPAN("forward");
      std::this_thread::sleep_for(std::chrono::milliseconds(3));  // Longer than the clock's first anchor takes.
    }
    lockstep_step_end();
  }
  static std::vector<std::string> Codes(const StageFiles& files) {
    std::vector<std::string> codes;
    for (const model::LedgerEntry& entry : files.ledger.entries()) codes.push_back(entry.code);
    return codes;
  }

  TemporaryFolder scratch_;
};

TEST_F(StageFilesTest, EachRankHasItsStepsInStages) {
  Rank(1, TwoSteps);
  Rank(0, TwoSteps, true);
  const auto files = ReadStageFiles({scratch_.path()});
  ASSERT_TRUE(files) << files.error().ToString();
  EXPECT_THAT(Codes(*files), IsEmpty());
  ASSERT_THAT(files->ranks, SizeIs(2));
  for (int rank = 0; rank < 2; ++rank) {
    const model::RankStages& read = files->ranks[static_cast<size_t>(rank)];
    EXPECT_EQ(read.rank, rank);
    EXPECT_EQ(read.world_size, 2);
    EXPECT_EQ(read.ended_in_order, rank == 1) << "the other was killed";
    ASSERT_THAT(read.steps, SizeIs(2));
    EXPECT_EQ(read.steps[1].number, read.steps[0].number + 1);
    for (const StepStages& step : read.steps) {
      int64_t sum_ns = 0;
      for (const model::StageSpan& span : step.spans) sum_ns += span.duration_ns;
      EXPECT_EQ(sum_ns, step.duration_ns);
    }
  }
}

TEST_F(StageFilesTest, ARanksMemoryIsMeasuredOnceASecondAndWhatTheProgramCountsIsRead) {
  Rank(0, [] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2300);
    while (std::chrono::steady_clock::now() < end) {
      lockstep_step();
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    LOCKSTEP_COUNTER("torch_memory_reserved_bytes", 5e9);
    LOCKSTEP_COUNTER("torch_memory_total_bytes", 8e9);
    lockstep_step_end();
  });
  Rank(1, TwoSteps);
  const auto files = ReadStageFiles({scratch_.path()});
  ASSERT_TRUE(files) << files.error().ToString();
  const model::RankMemory& memory = files->ranks.at(0).memory;
  const auto& resident = memory.resident.samples();
  ASSERT_THAT(resident, SizeIs(::testing::Ge(2U)));
  for (size_t i = 1; i < resident.size(); ++i) EXPECT_GE(resident[i].time_ns - resident[i - 1].time_ns, 990'000'000);
  EXPECT_GT(resident[0].bytes, 500'000);
  EXPECT_LT(resident[0].bytes, memory.host_bytes.value_or(0));
  ASSERT_THAT(memory.reserved.samples(), SizeIs(1));
  EXPECT_EQ(memory.reserved.samples()[0].bytes, 5'000'000'000);
  EXPECT_EQ(memory.device_bytes, 8'000'000'000);
  EXPECT_THAT(memory.allocated.samples(), IsEmpty());
  EXPECT_THAT(files->ranks.at(1).memory.resident.samples(), IsEmpty()) << "it ended within a second";
}

TEST_F(StageFilesTest, TheLastProcessOfARankCountsAndMissingRanksAreNamed) {
  Rank(0, TwoSteps);
  Rank(0, [] {
    lockstep_step();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    lockstep_step_end();
  });
  const auto files = ReadStageFiles({scratch_.path()});
  ASSERT_TRUE(files) << files.error().ToString();
  ASSERT_THAT(files->ranks, SizeIs(1));
  EXPECT_THAT(files->ranks[0].steps, SizeIs(1));
  EXPECT_THAT(Codes(*files), ElementsAre("rank_started_again", "rank_without_stages"));
}

TEST_F(StageFilesTest, AFileThatIsNoneDoesNotHideTheOthers) {
  Rank(0, TwoSteps);
  Rank(1, TwoSteps);
  std::ofstream(scratch_.path() + "/other.spans") << "no spans";
  const auto files = ReadStageFiles({scratch_.path()});
  ASSERT_TRUE(files) << files.error().ToString();
  EXPECT_THAT(files->ranks, SizeIs(2));
  EXPECT_THAT(Codes(*files), ElementsAre("unreadable_file"));
}

TEST_F(StageFilesTest, WhatSaysNothingIsAnErrorThatSaysWhatToDo) {
  const auto empty = ReadStageFiles({scratch_.path()});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(empty.error().message, ::testing::HasSubstr("lockstep run --stages"));
  std::ofstream(scratch_.path() + "/other.spans") << "no spans";
  const auto damaged = ReadStageFiles({scratch_.path()});
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, ErrorCode::kCorruptData);
}

TEST(DropImpossibleStepsTest, OverlapsAndTimesBeyondAnyAreLeftOut) {
  const auto step = [](int64_t start_ns, int64_t duration_ns) {
    return StepStages{.start_ns = start_ns, .duration_ns = duration_ns, .spans = {{Stage::kOther, duration_ns}}};
  };
  std::vector<StepStages> steps = {step(0, 10),  step(5, 10), step(10, 20), step(40, INT64_MAX - 50),
                                   step(50, -1), step(60, 1)};
  EXPECT_EQ(DropImpossibleSteps(&steps), 3U);
  ASSERT_THAT(steps, SizeIs(3));
  EXPECT_EQ(steps[1].start_ns, 10);
  EXPECT_EQ(steps[2].start_ns, 60);
}

}  // namespace
}  // namespace lockstep::ingest
