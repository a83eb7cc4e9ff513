#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "ingest/bytes/compress_for_test.h"
#include "ingest/logs/first_errors.h"
#include "ingest/logs/log_fold.h"
#include "ingest/logs/log_merger.h"
#include "inside/log_write/rotated_compressor.h"
#include "inside/log_write/rotating_file.h"
#include "model/log_line/line.h"

namespace lockstep::logs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

constexpr int64_t kBegin_ns = 1'795'399'937'000'000'000;

std::string Line(int32_t rank, int64_t at_ns, std::string_view text, Level level = Level::kInfo) {
  std::string out;
  LineWriter(LineForm::kText, rank, fmt::format("node{}", rank / 2))
      .Append({kBegin_ns + at_ns, 5'000'000'000 + at_ns}, level, "out", text, &out);
  return out;
}

class ReadTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "lockstep-logs-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& bytes, bool appends = false) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, appends ? std::ios::app : std::ios::trunc) << bytes;
  }
  /// Readers of all logs, in a merger.
  void Open(LogReader::ClockOffset offset = {}) {
    auto families = FindLogs({folder_.string()});
    ASSERT_TRUE(families);
    for (LogFamily& family : *families) {
      readers_.push_back(std::make_unique<LogReader>(std::move(family), filter_, offset));
      merger_.Add(readers_.back().get());
    }
  }
  std::vector<std::string> Texts(bool follows = false) {
    std::vector<std::string> texts;
    merger_.Retry();
    for (LogLine line; merger_.Next(&line, follows);) {
      texts.push_back(fmt::format("{} {}", line.rank.value_or(-1), line.text));
    }
    return texts;
  }

  fs::path folder_;
  LogFilter filter_;
  std::vector<std::unique_ptr<LogReader>> readers_;
  LogMerger merger_;
};

TEST_F(ReadTest, RanksAreMergedByTime) {
  Write("rank1.a.log", Line(1, 20, "b") + Line(1, 40, "d"));
  Write("rank0.a.log", Line(0, 10, "a") + Line(0, 30, "c") + Line(0, 40, "c2"));
  Open();
  EXPECT_THAT(Texts(), ElementsAre("0 a", "1 b", "0 c", "0 c2", "1 d"));
}

TEST_F(ReadTest, ClocksAreCorrected) {
  Write("rank1.a.log", Line(1, 1'000'000'020, "b"));
  Write("rank0.a.log", Line(0, 10, "a") + Line(0, 30, "c"));
  Open([](std::optional<int32_t> rank) { return rank == 1 ? 1'000'000'000 : 0; });
  EXPECT_THAT(Texts(), ElementsAre("0 a", "1 b", "0 c"));
}

TEST_F(ReadTest, RotatedFilesComeFirstWhateverTheyAreCompressedWith) {
  Write("rank0.log.3.zst", ingest::test::Zstd(Line(0, 1, "a")));
  Write("rank0.log.2.gz", ingest::test::Gzip(Line(0, 2, "b") + Line(0, 3, "c")));
  Write("rank0.log.1", Line(0, 4, "d"));
  Write("rank0.log.1.gz", "being written");
  Write("rank0.log", Line(0, 5, "e"));
  Open();
  EXPECT_THAT(Texts(), ElementsAre("0 a", "0 b", "0 c", "0 d", "0 e"));
  EXPECT_TRUE(readers_[0]->counts().problems.empty());
}

TEST_F(ReadTest, ADamagedFileIsNamedAndTheOthersAreRead) {
  const std::string whole = ingest::test::Gzip(Line(3, 1, "a") + Line(3, 2, std::string(100'000, 'x')));
  Write("rank3.log.1.gz", whole.substr(0, whole.size() - 20));
  Write("rank3.log", Line(3, 5, "e"));
  Open();
  const auto texts = Texts();
  EXPECT_EQ(texts.front(), "3 a");
  EXPECT_EQ(texts.back(), "3 e");
  ASSERT_EQ(readers_[0]->counts().problems.size(), 1u);
  EXPECT_THAT(readers_[0]->counts().problems[0], testing::HasSubstr("rank3.log.1.gz"));
}

TEST_F(ReadTest, OthersLogsAreReadAsTheyStand) {
  Write("attempt_0/3/stderr.log",
        "2026-11-23 02:12:18,5 - trainer - ERROR - late\ncontinued\n2026-11-23 02:12:19 INFO next\n");
  Write("rank1.txt", "\x1b[31m[rank1]: 2026-11-23T02:12:18.6 WARNING low\x1b[0m\n");
  Write("slurm-4711.out", " 0: 2026-11-23 02:12:18.7 x\n12: 2026-11-23 02:12:18.8 y\n");
  Write("notes.md", "not a log\n");
  Open();
  EXPECT_THAT(Texts(), ElementsAre("3 2026-11-23 02:12:18,5 - trainer - ERROR - late", "3 continued",
                                   "1 2026-11-23T02:12:18.6 WARNING low", "0 2026-11-23 02:12:18.7 x",
                                   "12 2026-11-23 02:12:18.8 y", "3 2026-11-23 02:12:19 INFO next"));
}

TEST_F(ReadTest, FiltersByLevelRankAndText) {
  Write("rank0.log", Line(0, 1, "a x") + Line(0, 2, "b x", Level::kError) + Line(0, 3, "c", Level::kError));
  Write("rank1.log", Line(1, 4, "d x", Level::kFatal));
  Write("rank2.log", Line(2, 5, "e x", Level::kFatal));
  filter_ = {.least = Level::kError, .ranks = {{0, 1}}, .texts = {"x", "y"}};
  Open();
  EXPECT_THAT(Texts(), ElementsAre("0 b x", "1 d x"));
  EXPECT_EQ(readers_[0]->counts().line_count, 3u);
  EXPECT_EQ(readers_[0]->counts().wanted_count, 1u);
}

TEST_F(ReadTest, FollowsWhatIsAppendedAndWaitsForWholeLines) {
  Write("rank0.log", Line(0, 1, "a"));
  Open();
  EXPECT_THAT(Texts(true), ElementsAre("0 a"));
  const std::string next = Line(0, 2, "b");
  Write("rank0.log", next.substr(0, 50), true);
  EXPECT_THAT(Texts(true), ElementsAre());
  Write("rank0.log", next.substr(50) + Line(0, 3, "c"), true);
  EXPECT_THAT(Texts(true), ElementsAre("0 b", "0 c"));
}

TEST_F(ReadTest, FollowsThroughRotationsHoweverMany) {
  auto file = RotatingFile::Create({.path = (folder_ / "rank0.log").string(), .max_bytes = 300, .file_count = 9});
  ASSERT_TRUE(file);
  std::vector<std::string> wanted, got;
  const auto add = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const std::string text = fmt::format("line {}", wanted.size());
      ASSERT_TRUE(file->Write(Line(0, static_cast<int64_t>(wanted.size()), text)));
      wanted.push_back("0 " + text);
    }
  };
  add(2);
  Open();
  for (const int count : {0, 1, 3, 7, 1, 12}) {
    const auto texts = Texts(true);
    got.insert(got.end(), texts.begin(), texts.end());
    add(count);
  }
  const auto texts = Texts(true);
  got.insert(got.end(), texts.begin(), texts.end());
  EXPECT_EQ(got, wanted);
}

/// Until every rotated file of the log is compressed.
void CompressAll(const fs::path& path, int oldest_age) {
  RotatedCompressor compressor(path.string(), oldest_age);
  compressor.OnRotated();
  const auto is_done = [&] {
    for (int age = 1; age <= oldest_age; ++age) {
      if (fs::exists(path.string() + fmt::format(".{}", age))) return false;
    }
    return true;
  };
  for (int i = 0; i < 100'000 && !is_done(); ++i) {
    compressor.Look();
    ::usleep(1'000);
  }
  EXPECT_TRUE(is_done());
}

TEST_F(ReadTest, WhatIsCompressedBetweenTheLookAndTheReadingIsReadOnce) {
  Write("rank0.log.3", Line(0, 1, "a"));
  Write("rank0.log.2", Line(0, 2, "b"));
  Write("rank0.log.1", Line(0, 3, "c"));
  Write("rank0.log", Line(0, 4, "d"));
  Open();
  CompressAll(folder_ / "rank0.log", 3);
  EXPECT_THAT(Texts(true), ElementsAre("0 a", "0 b", "0 c", "0 d"));
  EXPECT_THAT(Texts(true), testing::IsEmpty());
  EXPECT_TRUE(readers_.front()->counts().problems.empty());
}

TEST_F(ReadTest, ANumberThatComesBackIsAnotherFile) {
  Write("rank0.log.2", Line(0, 1, "a"));
  Write("rank0.log.1", Line(0, 2, "b"));
  Write("rank0.log", Line(0, 3, "c"));
  auto families = FindLogs({folder_.string()});
  ASSERT_TRUE(families);
  // All are compressed, and new files take their numbers where the file system gives them again.
  for (int round = 0; round < 4; ++round) {
    const std::string path = (folder_ / "rank0.log").string();
    CompressAll(path, 2 + round);
    for (int age = 2 + round; age >= 1; --age)
      fs::rename(fmt::format("{}.{}.gz", path, age), fmt::format("{}.{}.gz", path, age + 1));
    fs::rename(path, path + ".1");
    Write("rank0.log", Line(0, 10 + round, fmt::format("new {}", round)));
  }
  readers_.push_back(std::make_unique<LogReader>(std::move(families->front()), filter_, nullptr));
  merger_.Add(readers_.back().get());
  EXPECT_THAT(Texts(true), ElementsAre("0 a", "0 b", "0 c", "0 new 0", "0 new 1", "0 new 2", "0 new 3"));
}

TEST_F(ReadTest, FollowsWhileRotatedFilesAreCompressed) {
  constexpr int kLines = 20'000;
  auto file = RotatingFile::Create(
      {.path = (folder_ / "rank0.log").string(), .max_bytes = 20'000, .file_count = 500, .compresses = true});
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Write(Line(0, 0, "0")));
  Open();
  int next = 0;
  const auto read = [&] {
    for (const std::string& text : Texts(true)) ASSERT_EQ(text, fmt::format("0 {}", next++));
  };
  const auto compressed = [&] {
    return std::count_if(fs::directory_iterator(folder_), {},
                         [](const fs::directory_entry& entry) { return entry.path().extension() == ".gz"; });
  };
  for (int i = 1; i < kLines; ++i) {
    ASSERT_TRUE(file->Write(Line(0, i, fmt::format("{}", i))));
    // Some are compressed by now that have not been read.
    for (int wait = 0; i % 1'000 == 0 && wait < 100'000 && compressed() < i / 1'000; ++wait) {
      ::usleep(1'000);
      ASSERT_TRUE(file->Write(""));
    }
    if (i % 1'700 == 0) read();
  }
  read();
  EXPECT_EQ(next, kLines);
  EXPECT_GE(compressed(), kLines / 1'000 - 1);
  EXPECT_TRUE(readers_.front()->counts().problems.empty());
}

TEST_F(ReadTest, AClockThatIsSetIsToldAndTheOrderKept) {
  std::string set;
  LineWriter(LineForm::kText, 0, "node0")
      .Append({kBegin_ns - 3'000'000'000, 6'000'000'000}, Level::kInfo, "out", "b", &set);
  Write("rank0.log", Line(0, 1, "a") + set);
  Open();
  EXPECT_THAT(Texts(), ElementsAre("0 a", "0 b"));
  ASSERT_EQ(readers_[0]->counts().clock_steps.size(), 1u);
  EXPECT_THAT(readers_[0]->counts().clock_steps[0], testing::HasSubstr("was set by -4.000 s"));
}

TEST_F(ReadTest, WithoutAnyLogItSaysSo) {
  Write("a.json", "{}");
  const auto families = FindLogs({folder_.string()});
  ASSERT_FALSE(families);
  EXPECT_EQ(families.error().code, ErrorCode::kNotFound);
}

class FoldTest : public testing::Test {
 protected:
  void Add(int32_t rank, int64_t at_ns, std::string_view text, Level level = Level::kInfo) {
    fold_.Add({.time_unix_ns = at_ns, .has_time = true, .level = level, .rank = rank, .text = text});
  }
  std::vector<std::string> shown_;
  LogFold fold_{1'000, [this](const FoldedLine& line) {
                  shown_.push_back(fmt::format("{} {} {}", line.time_unix_ns, fmt::join(line.ranks, ","), line.text));
                }};
};

TEST_F(FoldTest, RanksThatSayTheSameWithinTheWindowAreJoined) {
  Add(2, 0, "x");
  Add(0, 500, "x");
  Add(1, 1'000, "x");
  Add(3, 1'001, "x");
  fold_.Flush();
  EXPECT_THAT(shown_, ElementsAre("0 0,1,2 x", "1001 3 x"));
}

TEST_F(FoldTest, WhatOneRankSaysKeepsItsOrder) {
  for (const int32_t rank : {0, 1}) {
    for (const char* text : {"a", "b", "a"}) Add(rank, rank, text);
  }
  Add(2, 2, "b");
  Add(2, 3, "a");
  fold_.Flush();
  EXPECT_THAT(shown_, ElementsAre("0 0,1 a", "0 0,1,2 b", "0 0,1,2 a"));
}

TEST_F(FoldTest, LevelsAndTextsAreToldApart) {
  Add(0, 0, "x");
  Add(1, 0, "x", Level::kError);
  Add(2, 0, "y");
  fold_.Flush();
  EXPECT_EQ(shown_.size(), 3u);
}

TEST_F(FoldTest, EachRankIsCountedOnceForEachLineItSaid) {
  // Many ranks, few texts: whatever is joined, nothing is lost and nothing is made up.
  size_t said = 0;
  size_t shown = 0;
  LogFold fold(50, [&](const FoldedLine& line) { shown += line.ranks.size(); });
  for (int64_t time_ns = 0; time_ns < 20'000; ++time_ns, ++said) {
    const std::string text = fmt::format("text {}", time_ns * 7 % 5);
    fold.Add(
        {.time_unix_ns = time_ns, .has_time = true, .rank = static_cast<int32_t>(time_ns * 13 % 11), .text = text});
  }
  fold.Flush();
  EXPECT_EQ(shown, said);
}

TEST(FirstErrorsTest, OneOfEachRankTheEarliestFirst) {
  FirstErrors errors;
  const auto add = [&](int32_t rank, Level level, std::string_view text) {
    errors.Add({.level = level, .rank = rank, .text = text});
  };
  add(1, Level::kWarning, "no");
  add(2, Level::kError, "first");
  add(0, Level::kFatal, "second");
  add(2, Level::kFatal, "again");
  ASSERT_EQ(errors.lines().size(), 2u);
  EXPECT_EQ(errors.lines()[0].text, "first");
  EXPECT_EQ(errors.lines()[1].text, "second");
}

}  // namespace
}  // namespace lockstep::logs
