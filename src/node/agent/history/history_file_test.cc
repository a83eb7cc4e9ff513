#include "node/agent/history/history_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/temporary_folder.h"

namespace lockstep::agent {
namespace {

constexpr int64_t kNowMs = 1'790'000'000'000;
constexpr size_t kSteps = 1;

HistorySample Rank(int rank, int64_t steps) {
  HistorySample sample{HistoryKind::kRank, {{"job_id", "4711"}, {"rank", std::to_string(rank)}}, {}};
  sample.values[0] = 1;
  sample.values[kSteps] = steps;
  return sample;
}

class HistoryFileTest : public testing::Test {
 protected:
  HistoryFileTest() : folder_("history_file_test") {
    options_.path = folder_.File("history");
    options_.keep_ms = {900'000, 21'600'000};
  }
  void Open(int64_t now_ms = kNowMs) {
    file_.reset();
    problem_.clear();
    Result<std::unique_ptr<HistoryFile>> opened = HistoryFile::Open(options_, now_ms, &problem_);
    ASSERT_TRUE(opened) << opened.error().ToString();
    file_ = std::move(*opened);
  }
  struct Seen {
    int64_t time_ms;
    std::string rank;
    int64_t steps;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> Read(HistoryTier tier = HistoryTier::kFine, int64_t since_ms = 0, int64_t until_ms = INT64_MAX) {
    std::vector<Seen> seen;
    HistoryView::Visitor visitor;
    visitor.sample = [&](int64_t time_ms, const HistoryFrameState::Series& series) {
      seen.push_back({time_ms, series.labels.at("rank"), series.values[kSteps]});
    };
    file_->View().Read(tier, since_ms, until_ms, visitor);
    return seen;
  }
  /// Looks of `ranks` ranks, a second apart.
  void Fill(int from, int to, int ranks = 2) {
    for (int i = from; i < to; ++i) {
      std::vector<HistorySample> samples;
      for (int rank = 0; rank < ranks; ++rank) samples.push_back(Rank(rank, 100LL * i + rank));
      ASSERT_TRUE(file_->Append(HistoryTier::kFine, kNowMs + 1000 * i, samples, {}));
    }
  }
  std::string Bytes() const {
    std::ifstream stream(options_.path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  void Write(const std::string& bytes) { std::ofstream(options_.path, std::ios::binary) << bytes; }

  TemporaryFolder folder_;
  HistoryFile::Options options_;
  std::unique_ptr<HistoryFile> file_;
  std::string problem_;
};

TEST_F(HistoryFileTest, WhatWasWrittenIsReadAlsoByTheNextProcess) {
  Open();
  Fill(0, 3);
  const std::vector<Seen> expected = {{kNowMs, "0", 0},          {kNowMs, "1", 1},          {kNowMs + 1000, "0", 100},
                                      {kNowMs + 1000, "1", 101}, {kNowMs + 2000, "0", 200}, {kNowMs + 2000, "1", 201}};
  EXPECT_EQ(Read(), expected);
  Open();
  EXPECT_EQ(Read(), expected);
  const uint64_t bytes = file_->bytes();
  // It goes on in the same block.
  Fill(3, 5);
  EXPECT_EQ(Read().size(), 10u);
  EXPECT_EQ(file_->bytes(), bytes);
  Open();
  EXPECT_EQ(Read(HistoryTier::kFine, kNowMs + 3000, kNowMs + 4000),
            (std::vector<Seen>{{kNowMs + 3000, "0", 300}, {kNowMs + 3000, "1", 301}}));
  EXPECT_THAT(Read(HistoryTier::kCoarse), testing::IsEmpty());
}

TEST_F(HistoryFileTest, ValuesThatAreNotThereAreAbsent) {
  Open();
  HistorySample sample = Rank(0, 5);
  ASSERT_TRUE(file_->Append(HistoryTier::kFine, kNowMs, {sample}, {}));
  sample.values[kSteps].reset();
  ASSERT_TRUE(file_->Append(HistoryTier::kFine, kNowMs + 1000, {sample}, {}));
  std::vector<uint64_t> present;
  HistoryView::Visitor visitor;
  visitor.sample = [&](int64_t, const HistoryFrameState::Series& series) { present.push_back(series.present); };
  file_->View().Read(HistoryTier::kFine, 0, INT64_MAX, visitor);
  EXPECT_THAT(present, testing::ElementsAre(3u, 1u));
}

TEST_F(HistoryFileTest, EventsComeBack) {
  Open();
  ASSERT_TRUE(file_->Append(HistoryTier::kCoarse, kNowMs, {}, {{kNowMs * 1'000'000, "gpu_xid", {{"gpu", "3"}}, 2}}));
  Open();
  std::vector<control::HistoryEvent> events;
  HistoryView::Visitor visitor;
  visitor.event = [&](control::HistoryEvent event) { events.push_back(std::move(event)); };
  file_->View().Read(HistoryTier::kCoarse, 0, INT64_MAX, visitor);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, "gpu_xid");
  EXPECT_EQ(events[0].unix_ns, kNowMs * 1'000'000);
  EXPECT_EQ(events[0].labels, (HistoryLabels{{"gpu", "3"}}));
  EXPECT_EQ(events[0].count, 2);
}

TEST_F(HistoryFileTest, StaysWithinItsLimitAndForgetsTheOldest) {
  options_.limit_bytes = HistoryFile::kLeastBytes;
  Open();
  std::mt19937_64 random(7);
  for (int i = 0; i < 400; ++i) {
    std::vector<HistorySample> samples;
    // Values that do not compress: a look is over 10 KiB.
    for (int rank = 0; rank < 64; ++rank) {
      samples.push_back(Rank(rank, i));
      for (size_t figure = 2; figure < 25; ++figure)
        samples.back().values.at(figure) = static_cast<int64_t>(random() >> 4);
    }
    for (const HistoryTier tier : {HistoryTier::kFine, HistoryTier::kCoarse}) {
      ASSERT_TRUE(file_->Append(tier, kNowMs + 1000 * i, samples, {}));
    }
    ASSERT_LE(file_->bytes(), options_.limit_bytes);
  }
  EXPECT_LE(std::filesystem::file_size(options_.path), options_.limit_bytes);
  for (const HistoryTier tier : {HistoryTier::kFine, HistoryTier::kCoarse}) {
    const std::vector<Seen> seen = Read(tier);
    // The newest are there, each look with all its ranks; the first are not.
    ASSERT_GE(seen.size(), 64u);
    EXPECT_EQ(seen.back().time_ms, kNowMs + 399'000);
    EXPECT_GT(seen.front().steps, 300);
    EXPECT_EQ(file_->View().OldestMs(tier, kNowMs + 399'000), seen.front().time_ms);
    for (size_t i = 0; i < 64; ++i) EXPECT_EQ(seen[seen.size() - 64 + i].steps, 399);
  }
}

TEST_F(HistoryFileTest, BlocksOfWhatIsOverAreUsedAgain) {
  options_.keep_ms = {10'000, 10'000};
  Open();
  for (int hour = 0; hour < 20; ++hour) {
    // Every "hour" a job of another name, so that nothing of an older block is of use.
    std::vector<HistorySample> samples;
    for (int rank = 0; rank < 200; ++rank) {
      samples.push_back(Rank(rank, hour));
      samples.back().labels["job_id"] = std::string(100, static_cast<char>('a' + hour));
    }
    for (int i = 0; i < 60; ++i) {
      ASSERT_TRUE(file_->Append(HistoryTier::kFine, kNowMs + 3'600'000LL * hour + 1000 * i, samples, {}));
    }
  }
  EXPECT_LE(file_->bytes(), 16 * HistoryFile::kBlockBytes);
  // What is over may still lie there; it is not said to be kept.
  const int64_t now_ms = kNowMs + 3'600'000LL * 19 + 59'000;
  EXPECT_GE(file_->View().OldestMs(HistoryTier::kFine, now_ms), now_ms - 10'000);
}

TEST_F(HistoryFileTest, AViewHasNothingOfBlocksThatAreUsedAgainSince) {
  options_.limit_bytes = HistoryFile::kLeastBytes;
  Open();
  Fill(0, 10, 1);
  const HistoryView before = file_->View();
  int64_t last_ms = kNowMs + 9000;
  for (int i = 10; last_ms - kNowMs < 60'000 || file_->View().OldestMs(HistoryTier::kFine, last_ms) <= kNowMs; ++i) {
    last_ms = kNowMs + 1000 * i;
    HistorySample sample = Rank(0, i);
    sample.labels["job_id"] = std::string(20'000, 'j') + std::to_string(i);
    ASSERT_TRUE(file_->Append(HistoryTier::kFine, last_ms, {sample}, {}));
    ASSERT_LT(i, 1000);
  }
  int seen = 0;
  HistoryView::Visitor visitor;
  visitor.sample = [&](int64_t, const HistoryFrameState::Series&) { ++seen; };
  before.Read(HistoryTier::kFine, 0, INT64_MAX, visitor);
  EXPECT_EQ(seen, 0);
}

TEST_F(HistoryFileTest, ALookThatIsLargerThanABlockIsInSeveral) {
  Open();
  Fill(0, 3, 4000);
  const std::vector<Seen> seen = Read();
  ASSERT_EQ(seen.size(), 12'000u);
  EXPECT_EQ(seen[11'999], (Seen{kNowMs + 2000, "3999", 4199}));
  Open();
  EXPECT_EQ(Read(), seen);
}

TEST_F(HistoryFileTest, CutAnywhereItHasWhatIsBeforeTheCut) {
  Open();
  Fill(0, 20);
  const std::vector<Seen> whole = Read();
  const std::string bytes = Bytes();
  for (size_t length = 0; length < bytes.size(); length += 1 + length / 100) {
    Write(bytes.substr(0, length));
    Open();
    const std::vector<Seen> seen = Read();
    ASSERT_LE(seen.size(), whole.size());
    EXPECT_TRUE(std::equal(seen.begin(), seen.end(), whole.begin())) << length;
    EXPECT_EQ(seen.size() % 2, 0u);
    // And is written on.
    Fill(30, 31);
    ASSERT_EQ(Read().size(), seen.size() + 2) << length;
    Open();
    ASSERT_EQ(Read().size(), seen.size() + 2) << length;
  }
}

TEST_F(HistoryFileTest, WhateverIsChangedInItItOpens) {
  Open();
  Fill(0, 40);
  ASSERT_TRUE(file_->Append(HistoryTier::kCoarse, kNowMs, {Rank(0, 1)}, {{0, "x", {{"a", "b"}}, 1}}));
  const std::string bytes = Bytes();
  const size_t whole = Read().size();
  std::mt19937 random(11);
  size_t lost = 0;
  for (int round = 0; round < 300; ++round) {
    std::string broken = bytes;
    for (int i = 0; i < 4; ++i) broken[random() % 3000 + (round % 2 == 0 ? 4096 : 0)] = static_cast<char>(random());
    Write(broken);
    Open();
    const size_t seen = Read().size();
    EXPECT_LE(seen, whole);
    lost += seen < whole ? 1 : 0;
    Fill(50, 52);
  }
  EXPECT_GT(lost, 100u);
}

TEST_F(HistoryFileTest, AnotherFilesBytesAreBegunAnewAndToldOf) {
  Write("something else, much longer than nothing");
  Open();
  EXPECT_THAT(problem_, testing::HasSubstr("a new one was begun"));
  EXPECT_THAT(Read(), testing::IsEmpty());
  Fill(0, 2);
  Open();
  EXPECT_EQ(problem_, "");
  EXPECT_EQ(Read().size(), 4u);
}

TEST_F(HistoryFileTest, LinksAndFoldersAreRefused) {
  const std::string target = folder_.File("target");
  std::ofstream(target) << "precious";
  std::filesystem::create_symlink(target, options_.path);
  EXPECT_FALSE(HistoryFile::Open(options_, kNowMs, nullptr));
  EXPECT_EQ(std::filesystem::file_size(target), 8u);
  std::filesystem::remove(options_.path);
  std::filesystem::create_directory(options_.path);
  EXPECT_FALSE(HistoryFile::Open(options_, kNowMs, nullptr));
}

TEST_F(HistoryFileTest, ASmallerLimitCutsIt) {
  Open();
  Fill(0, 5, 4000);
  ASSERT_GT(file_->bytes(), HistoryFile::kLeastBytes);
  options_.limit_bytes = HistoryFile::kLeastBytes;
  Open();
  EXPECT_LE(file_->bytes(), options_.limit_bytes);
  Fill(5, 8);
  EXPECT_EQ(Read().back(), (Seen{kNowMs + 7000, "1", 701}));
}

TEST_F(HistoryFileTest, AFullDiskLosesOnlyWhatDoesNotFit) {
  Open();
  Fill(0, 10);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  // Stands for a full disk: the kernel refuses what lies beyond.
  struct rlimit full = before;
  full.rlim_cur = std::filesystem::file_size(options_.path);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const Status status = file_->Append(HistoryTier::kFine, kNowMs + 11'000, {Rank(0, 9), Rank(1, 9)}, {});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);
  EXPECT_FALSE(status);
  EXPECT_EQ(Read().size(), 20u);
  Fill(12, 13);
  EXPECT_EQ(Read().size(), 22u);
  Open();
  EXPECT_EQ(Read().size(), 22u);
}

}  // namespace
}  // namespace lockstep::agent
