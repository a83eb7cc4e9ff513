#include "present/live_stages/stage_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "analysis/frontier/slow_rank_for_test.h"

namespace lockstep::live_stages {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

Result<ingest::StageFiles> SlowSecondRank(uint64_t step_count) {
  ingest::StageFiles files;
  files.ranks = frontier::SlowSecondRank(static_cast<int64_t>(step_count));
  return files;
}

live::View ViewOf(const std::vector<std::pair<std::string, size_t>>& jobs) {
  live::View view;
  for (const auto& [job_id, rank_count] : jobs) {
    live::JobView& job = view.jobs.emplace_back();
    job.job_id = job_id;
    for (size_t i = 0; i < rank_count; ++i) job.ranks.emplace_back().step_count = 10;
  }
  return view;
}

template <typename Condition>
void WaitUntil(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

TEST(StageWatchTest, TellsWhoCostsAJobTimeInWhichStage) {
  std::atomic<uint64_t> asked_steps = 0;
  std::atomic<bool> is_told = false;
  std::vector<std::string> told;
  StageWatch watch({.ask = [&](const std::string& job_id, uint64_t last_steps) -> Result<ingest::StageFiles> {
                      asked_steps = last_steps;
                      if (job_id == "two") return Error{ErrorCode::kNotFound, "no steps"};
                      return SlowSecondRank(120);
                    },
                    .interval_ns = kMillisecondNs,
                    .tell =
                        [&](const std::vector<JobNews>& news) {
                          if (is_told) return;
                          for (const JobNews& job : news) {
                            told.push_back(job.job_id + (job.stages ? "" : ": " + job.stages.error().message));
                          }
                          is_told = true;
                        }});
  live::View view = ViewOf({{"two", 1}, {"one", 3}, {"pid-7", 1}, {"idle", 0}});
  watch.Pass(&view);
  WaitUntil([&] { return is_told.load(); });
  EXPECT_THAT(told, ElementsAre("one", "two: no steps")) << "with most ranks first";
  EXPECT_EQ(asked_steps, StageWatch::StepsOf(1));
  WaitUntil([&] {
    watch.Pass(&view);
    return view.jobs[1].stages.has_value();
  });
  EXPECT_EQ(view.jobs[1].stages->answer, "straggler");
  EXPECT_EQ(view.jobs[1].stages->rank, 1);
  EXPECT_EQ(view.jobs[1].stages->stage, "forward");
  EXPECT_THAT(view.jobs[1].stages->sentence, StartsWith("Rank 1 costs the job"));
  EXPECT_FALSE(view.jobs[0].stages.has_value());
}

TEST(StageWatchTest, NobodyIsAskedWhileNobodyLooks) {
  std::atomic<int> count = 0;
  std::atomic<bool> is_wanted = false;
  StageWatch watch({.ask =
                        [&](const std::string&, uint64_t) {
                          ++count;
                          return SlowSecondRank(30);
                        },
                    .interval_ns = kMillisecondNs,
                    .is_wanted = [&] { return is_wanted.load(); }});
  live::View view = ViewOf({{"one", 3}});
  watch.Pass(&view);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(count, 0);
  is_wanted = true;
  watch.Pass(&view);
  WaitUntil([&] { return count > 0; });
}

TEST(StageWatchTest, AViewGetsTheVerdictOfEachOfItsJobsAtOnce) {
  live::View view = ViewOf({{"one", 3}, {"idle", 0}});
  AddVerdicts([](const std::string&, uint64_t steps) { return SlowSecondRank(steps); }, &view);
  ASSERT_TRUE(view.jobs[0].stages.has_value());
  EXPECT_EQ(view.jobs[0].stages->rank, 1);
  EXPECT_FALSE(view.jobs[1].stages.has_value());
}

TEST(StageWatchTest, OfManyRanksFewerStepsAreAskedFor) {
  EXPECT_EQ(StageWatch::StepsOf(0), 240U);
  EXPECT_EQ(StageWatch::StepsOf(8), 240U);
  EXPECT_EQ(StageWatch::StepsOf(300), 100U);
  EXPECT_EQ(StageWatch::StepsOf(1'000'000), 24U);
}

}  // namespace
}  // namespace lockstep::live_stages
