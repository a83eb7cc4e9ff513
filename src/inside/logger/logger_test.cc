#include "inside/logger/logger.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "model/log_line/line.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class LoggerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "lockstep-logger-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  LoggerOptions Options() const { return {.folder = folder_.string(), .name = "trainer", .rank = 3}; }
  /// Of all files, by name: "E trainer text".
  std::map<std::string, std::vector<std::string>> Lines() const {
    std::map<std::string, std::vector<std::string>> lines;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        std::string storage;
        const auto parsed = logs::ParseLine(line, &storage);
        EXPECT_TRUE(parsed) << line;
        if (!parsed) continue;
        EXPECT_EQ(parsed->head.rank, 3);
        lines[entry.path().filename().string()].push_back(
            fmt::format("{} {} {}", logs::LevelLetter(parsed->head.level), parsed->head.source, parsed->text));
      }
    }
    return lines;
  }

  fs::path folder_;
};

TEST_F(LoggerTest, WritesLinesThatAreReadBackInBothForms) {
  for (const bool is_json : {false, true}) {
    LoggerOptions options = Options();
    options.is_json = is_json;
    const auto logger = Logger::Create(options);
    logger->info("step {}", 1);
    logger->critical("the \"end\"");
    const auto lines = Lines();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_THAT(lines.begin()->second, testing::ElementsAre("I trainer step 1", "F trainer the \"end\""));
    EXPECT_EQ(fs::path(logger->path()).extension(), is_json ? ".jsonl" : ".log");
    fs::remove(logger->path());
  }
}

TEST_F(LoggerTest, WhatWasLoggedSurvivesAKill) {
  const pid_t child = ::fork();
  if (child == 0) {
    Logger::Create(Options())->info("last words");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(Lines().size(), 1u);
  EXPECT_THAT(Lines().begin()->second, testing::ElementsAre("I trainer last words"));
}

TEST_F(LoggerTest, AChildHasAFileOfItsOwnAndNoLineTwice) {
  LoggerOptions options = Options();
  options.is_buffered = true;
  auto logger = Logger::Create(options);
  std::atomic<bool> ends = false;
  size_t noise = 0;
  std::thread other([&] {
    for (; !ends; ++noise) logger->info("noise");
  });
  logger->info("before");
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      logger->info("in child");
      logger->flush();
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  ends = true;
  other.join();
  logger->info("after");
  logger.reset();
  size_t children = 0, noises = 0, others = 0;
  const auto files = Lines();
  EXPECT_EQ(files.size(), 21u);
  for (const auto& [name, lines] : files) {
    for (const std::string& line : lines) {
      children += line == "I trainer in child" ? 1 : 0;
      noises += line == "I trainer noise" ? 1 : 0;
      others += line == "I trainer before" || line == "I trainer after" ? 1 : 0;
    }
  }
  EXPECT_EQ(children, 20u);
  EXPECT_EQ(noises, noise);
  EXPECT_EQ(others, 2u);
}

TEST_F(LoggerTest, ThreadsDoNotCutEachOthersLines) {
  LoggerOptions options = Options();
  options.max_bytes = 50'000;
  options.file_count = 99;
  const auto logger = Logger::Create(options);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&logger, i] {
      for (int j = 0; j < 1'000; ++j) logger->warn("thread {} line {}", i, j);
    });
  }
  for (std::thread& thread : threads) thread.join();
  size_t count = 0;
  for (const auto& [name, lines] : Lines()) count += lines.size();
  EXPECT_EQ(count, 4'000u);
}

TEST_F(LoggerTest, RotatedFilesAreCompressedButAForkedChildsAreNot) {
  LoggerOptions options = Options();
  options.max_bytes = 20'000;
  options.file_count = 99;
  options.compresses = true;
  const auto logger = Logger::Create(options);
  for (int i = 0; i < 2'000; ++i) logger->info("line {}", i);
  const auto count = [this](std::string_view part, std::string_view ending) {
    size_t found = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      found += name.find(part) != std::string::npos && name.ends_with(ending) ? 1 : 0;
    }
    return found;
  };
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (int i = 0; i < 2'000; ++i) logger->info("child {}", i);
    ::usleep(200'000);
    logger->info("end");
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (int i = 0; i < 60'000 && count("", ".gz") < 5; ++i) {
    ::usleep(1'000);
    logger->info("more");
  }
  const std::string of_child = fmt::format("pid{}.", child);
  EXPECT_GE(count("", ".gz"), 5u);
  EXPECT_EQ(count(of_child, ".gz"), 0u);
  EXPECT_GT(count(of_child, ""), 5u);
}

TEST_F(LoggerTest, AFolderThatCannotBeMadeIsNoErrorOfTheCaller) {
  LoggerOptions options = Options();
  options.folder = "/proc/no/such";
  testing::internal::CaptureStderr();
  const auto logger = Logger::Create(options);
  logger->info("one");
  logger->error("two");
  EXPECT_EQ(logger->path(), "");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::HasSubstr("no log is written: /proc/no/such"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
}

TEST_F(LoggerTest, OnTheConsoleIsRankZeroAlone) {
  for (const int32_t rank : {0, 1}) {
    LoggerOptions options = Options();
    options.folder.clear();
    options.rank = rank;
    testing::internal::CaptureStderr();
    Logger::Create(options)->info("hello");
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find(" I rank0 ") != std::string::npos && said.find(" trainer: hello\n") != std::string::npos,
              rank == 0);
    EXPECT_EQ(said.empty(), rank != 0);
  }
}

}  // namespace
}  // namespace lockstep
