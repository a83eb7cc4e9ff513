#include "base/mpi/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <thread>

namespace lockstep::mpi {
namespace {

std::optional<LauncherWord> Ask(const std::map<std::string, std::string>& environment) {
  return AskLauncher([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(LaunchTest, TheInnermostLauncherHasTheWord) {
  const auto word = Ask({{"SLURM_PROCID", "1"},
                         {"SLURM_STEP_NUM_TASKS", "4"},
                         {"OMPI_COMM_WORLD_RANK", "0"},
                         {"OMPI_COMM_WORLD_SIZE", "1"}});
  ASSERT_TRUE(word);
  EXPECT_EQ(word->launcher, "mpirun");
  EXPECT_EQ(ExplainLonelyProcesses(word, 1), "");
}

TEST(LaunchTest, ProcessesThatDoNotKnowEachOtherAreExplained) {
  const auto word = Ask({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}});
  ASSERT_TRUE(word);
  EXPECT_EQ(word->process, 1u);
  EXPECT_THAT(ExplainLonelyProcesses(word, 1), testing::HasSubstr("--mpi=pmix"));
  EXPECT_EQ(ExplainLonelyProcesses(word, 4), "");
  EXPECT_THAT(ExplainLonelyProcesses(Ask({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}), 1), testing::HasSubstr("mpirun"));
}

TEST(LaunchTest, NoLauncherIsOneProcess) {
  EXPECT_FALSE(Ask({}));
  EXPECT_FALSE(Ask({{"PMI_RANK", "zero"}, {"PMI_SIZE", "2"}}));
  EXPECT_EQ(ExplainLonelyProcesses(std::nullopt, 1), "");
}

TEST(LaunchTest, WhatWasWrittenIsReadBeforeAnythingEnds) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "why", 3), 3);
  std::atomic<bool> is_read = false;
  std::jthread launcher([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    char text[3];
    is_read = true;
    EXPECT_EQ(::read(ends[0], text, sizeof(text)), 3);
  });
  AwaitReader(ends[1]);
  EXPECT_TRUE(is_read);
  AwaitReader(ends[1]);  // Nothing is left.
  launcher.join();
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace lockstep::mpi
