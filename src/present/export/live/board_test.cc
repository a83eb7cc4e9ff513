#include "present/export/live/board.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/temporary_folder.h"
#include "present/export/live/figures.h"

namespace lockstep::export_live {
namespace {

using testing::UnorderedElementsAre;

live::RankView RankOf(const std::string& rank, uint64_t steps) {
  live::RankView view;
  view.rank = rank;
  view.host = "node/1";
  view.state = live::RankState::kRuns;
  view.step_count = steps;
  view.step_ns = 50'000'000;
  return view;
}

class BoardTest : public testing::Test {
 protected:
  std::vector<std::string> Runs() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename());
    return names;
  }
  TemporaryFolder folder_;
  Board board_{folder_.path(), 1 << 20};
};

TEST_F(BoardTest, ARunARankAndOneForTheJobWhateverTheyAreCalled) {
  live::JobView job;
  job.ranks = {RankOf("0", 1), RankOf("0", 1), RankOf("../../x", 1), RankOf("pid-7", 1)};
  ASSERT_TRUE(board_.Take(job, 1'000'000'000));
  EXPECT_THAT(Runs(), UnorderedElementsAre("job", "rank0", "rank0_node_1", "_._.._x", "pid-7"));
}

TEST_F(BoardTest, WhatSaysNothingNewIsNotWrittenAgain) {
  live::JobView job;
  job.ranks = {RankOf("0", 1)};
  ASSERT_TRUE(board_.Take(job, 1'000'000'000));
  const uint64_t first = board_.scalar_count();
  ASSERT_TRUE(board_.Take(job, 2'000'000'000));
  const uint64_t second = board_.scalar_count() - first;
  job.ranks = {RankOf("0", 2)};
  ASSERT_TRUE(board_.Take(job, 3'000'000'000));
  EXPECT_EQ(board_.scalar_count() - first - second, first);
  EXPECT_LT(second, first);
}

TEST_F(BoardTest, NothingIsWrittenOfRanksThatAreNotHeard) {
  live::JobView job;
  job.ranks = {RankOf("0", 1)};
  job.ranks[0].state = live::RankState::kUnheard;
  ASSERT_TRUE(board_.Take(job, 1'000'000'000));
  EXPECT_THAT(Runs(), UnorderedElementsAre("job"));
}

TEST_F(BoardTest, TheLimitHolds) {
  Board board(folder_.path(), 2000);
  live::JobView job;
  for (uint64_t i = 0; i < 100; ++i) {
    job.ranks = {RankOf("0", i)};
    ASSERT_TRUE(board.Take(job, 1'000'000'000));
  }
  EXPECT_TRUE(board.is_full());
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  EXPECT_GE(bytes, 2000u);
  EXPECT_LT(bytes, 6000u);
}

TEST(FiguresTest, NamesAreOnesOwn) {
  const auto check = [](const auto& figures) {
    std::set<std::string> tags, metrics;
    for (const auto& figure : figures) {
      EXPECT_TRUE(tags.insert(figure.tag).second) << figure.tag;
      EXPECT_TRUE(metrics.insert(figure.metric).second) << figure.metric;
    }
  };
  check(RankFigures());
  check(JobFigures());
  check(ServingFigures());
}

}  // namespace
}  // namespace lockstep::export_live
