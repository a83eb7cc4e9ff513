#include "present/live_site/view_history.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <string>

#include "base/nanoseconds.h"

namespace lockstep::live_site {
namespace {

constexpr int64_t kEpoch = 1'699'999'984 * kSecondNs;  // Divides by the longest bucket.

live::View ViewAt(int64_t at_ns, int rank_count, int64_t step_ns, const std::string& job_id = "j") {
  live::View view;
  view.taken_unix_ns = kEpoch + at_ns;
  live::JobView job;
  job.job_id = job_id;
  job.step_ns = step_ns;
  for (int i = 0; i < rank_count; ++i) {
    live::RankView rank;
    rank.rank = std::to_string(i);
    rank.state = live::RankState::kRuns;
    rank.step_ns = step_ns + i;
    job.ranks.push_back(std::move(rank));
  }
  view.jobs.push_back(std::move(job));
  return view;
}

rapidjson::Document Parse(const ViewHistory& history) {
  rapidjson::Document document;
  const std::string json = history.Json();
  document.Parse(json.data(), json.size());
  EXPECT_FALSE(document.HasParseError()) << json;
  return document;
}

TEST(ViewHistoryTest, LooksOfOneBucketAreTheirMean) {
  ViewHistory history;
  history.Add(ViewAt(100'000'000, 2, 100));
  history.Add(ViewAt(900'000'000, 2, 300));
  history.Add(ViewAt(3 * kSecondNs, 2, 500));
  const rapidjson::Document json = Parse(history);
  ASSERT_EQ(json["times_unix_ns"].Size(), 2U);  // Nobody looked in between.
  EXPECT_EQ(json["times_unix_ns"][1].GetInt64() - json["times_unix_ns"][0].GetInt64(), 3 * kSecondNs);
  const auto& job = json["jobs"][0];
  EXPECT_EQ(job["step_ns"][0].GetDouble(), 200);
  EXPECT_EQ(job["step_ns"][1].GetDouble(), 500);
  EXPECT_TRUE(job["tokens_per_s"][1].IsNull());
  EXPECT_EQ(job["ranks"][1]["step_ns"][0].GetDouble(), 201);
  EXPECT_STREQ(job["ranks"][1]["state"].GetString(), "rr");
}

TEST(ViewHistoryTest, WhatComesLateOrGoesHasHoles) {
  ViewHistory history;
  history.Add(ViewAt(0, 1, 100));
  history.Add(ViewAt(kSecondNs, 2, 100));
  history.Add(ViewAt(2 * kSecondNs, 1, 100));
  const rapidjson::Document json = Parse(history);
  const auto& late = json["jobs"][0]["ranks"][1];
  ASSERT_EQ(late["step_ns"].Size(), 3U);
  EXPECT_TRUE(late["step_ns"][0].IsNull());
  EXPECT_EQ(late["step_ns"][1].GetDouble(), 101);
  EXPECT_TRUE(late["step_ns"][2].IsNull());
  EXPECT_STREQ(late["state"].GetString(), ".r.");
}

TEST(ViewHistoryTest, EnginesAndInstancesOfGpusHaveColumnsAndGo) {
  ViewHistory history;
  live::View view = ViewAt(0, 0, 100);
  live::ServingView& serving = view.jobs[0].serving.emplace_back();
  serving.host = "n1";
  serving.reading.model = "m";
  serving.reading.waiting = 4;
  serving.reading.kv_cache_usage_ratio = 0.5;
  serving.reading.recent_inter_token_s = {{0.5, 0.02}};
  serving.preemptions_per_s = 0.25;
  live::GpuView& gpu = view.nodes.emplace_back().gpus.emplace_back();
  view.nodes[0].host = "n1";
  gpu.reading.gpu = "2";
  gpu.reading.mig_instances["10"].memory_used_bytes = 6;
  gpu.reading.mig_instances["9"].sm_active_ratio = 0.75;
  history.Add(view);
  const rapidjson::Document json = Parse(history);
  const auto& of = json["jobs"][0]["serving"][0];
  EXPECT_EQ(of["waiting_count"][0].GetDouble(), 4);
  EXPECT_TRUE(of["running_count"][0].IsNull());
  EXPECT_EQ(of["kv_cache_usage_ratio"][0].GetDouble(), 0.5);
  EXPECT_EQ(of["preemptions_per_s"][0].GetDouble(), 0.25);
  EXPECT_EQ(of["inter_token_p50_ns"][0].GetDouble(), 20'000'000);
  EXPECT_TRUE(of["inter_token_p99_ns"][0].IsNull());
  const auto& instances = json["nodes"][0]["gpus"][0]["mig_instances"];
  ASSERT_EQ(instances.Size(), 2U);
  EXPECT_STREQ(instances[0]["gi"].GetString(), "9");
  EXPECT_EQ(instances[0]["sm_active_ratio"][0].GetDouble(), 0.75);
  EXPECT_TRUE(instances[0]["memory_used_bytes"][0].IsNull());
  EXPECT_EQ(instances[1]["memory_used_bytes"][0].GetDouble(), 6);
  // It is divided no more: its instances go with the last bucket in which they were.
  view.nodes[0].gpus[0].reading.mig_instances.clear();
  view.nodes[0].gpus[0].reading.memory_used_bytes = 9;
  constexpr int64_t kAll = static_cast<int64_t>(ViewHistory::kMostBuckets) * ViewHistory::kLongestBucketNs;
  for (int64_t at_ns = kSecondNs; at_ns < 3 * kAll; at_ns += ViewHistory::kLongestBucketNs) {
    view.taken_unix_ns = kEpoch + at_ns;
    history.Add(view);
  }
  const rapidjson::Document later = Parse(history);
  EXPECT_EQ(later["nodes"][0]["gpus"][0]["mig_instances"].Size(), 0U);
  EXPECT_EQ(later["nodes"][0]["gpus"][0]["memory_used_bytes"][0].GetDouble(), 9);
}

TEST(ViewHistoryTest, OfAStateTheWorstIsKept) {
  ViewHistory history;
  live::View view = ViewAt(0, 1, 100);
  view.jobs[0].ranks[0].state = live::RankState::kStuck;
  history.Add(view);
  history.Add(ViewAt(500'000'000, 1, 100));
  EXPECT_STREQ(Parse(history)["jobs"][0]["ranks"][0]["state"].GetString(), "k");
}

TEST(ViewHistoryTest, BucketsGrowAndThenTheOldestGo) {
  ViewHistory history;
  history.Add(ViewAt(0, 1, 4000, "gone"));
  int64_t at_s = 1;
  for (; at_s <= static_cast<int64_t>(ViewHistory::kMostBuckets); ++at_s)
    history.Add(ViewAt(at_s * kSecondNs, 2, at_s));
  EXPECT_EQ(history.bucket_ns(), 2 * kSecondNs);
  const rapidjson::Document halved = Parse(history);
  EXPECT_EQ(halved["jobs"].Size(), 2U);
  EXPECT_EQ(halved["jobs"][1]["step_ns"][1].GetDouble(), 2.5);  // 2 and 3.
  EXPECT_STREQ(halved["jobs"][0]["job_id"].GetString(), "gone");
  EXPECT_EQ(halved["jobs"][0]["step_ns"][0].GetDouble(), 4000);
  for (; at_s < 20'000; ++at_s) history.Add(ViewAt(at_s * kSecondNs, 2, at_s));
  EXPECT_EQ(history.bucket_ns(), ViewHistory::kLongestBucketNs);
  EXPECT_LE(history.bucket_count(), ViewHistory::kMostBuckets);
  const rapidjson::Document json = Parse(history);
  ASSERT_EQ(json["jobs"].Size(), 1U);
  const auto& times = json["times_unix_ns"];
  for (rapidjson::SizeType i = 1; i < times.Size(); ++i) {
    EXPECT_EQ(times[i].GetInt64() - times[i - 1].GetInt64(), ViewHistory::kLongestBucketNs);
  }
  EXPECT_EQ(json["jobs"][0]["step_ns"].Size(), times.Size());
  EXPECT_EQ(json["jobs"][0]["ranks"][0]["state"].GetStringLength(), times.Size());
}

TEST(ViewHistoryTest, BucketsWithHolesBetweenThemSpanNoMoreThanOthers) {
  ViewHistory history;
  // What daemons remember: ten minutes, a look every two seconds.
  for (int64_t at_s = 0; at_s < 600; at_s += 2) history.Add(ViewAt(at_s * kSecondNs, 1, at_s));
  EXPECT_EQ(history.bucket_ns(), 2 * kSecondNs);
  EXPECT_EQ(history.bucket_count(), 300U);
  for (int64_t at_s = 600; at_s < 100'000; at_s += 60) history.Add(ViewAt(at_s * kSecondNs, 1, at_s));
  const rapidjson::Document json = Parse(history);
  const auto& times = json["times_unix_ns"];
  EXPECT_GT(times.Size(), 100U);
  EXPECT_LE(times[times.Size() - 1].GetInt64() - times[0].GetInt64(),
            static_cast<int64_t>(ViewHistory::kMostBuckets) * ViewHistory::kLongestBucketNs);
}

TEST(ViewHistoryTest, OfVeryManyRanksThereAreFewerBuckets) {
  ViewHistory history;
  constexpr int kRanks = 16'384;
  live::View view = ViewAt(0, kRanks, 100);
  for (int64_t i = 0; i < 70; ++i) {
    history.Add(view);
    view.taken_unix_ns += kSecondNs;
  }
  EXPECT_LE(history.bucket_count() * kRanks * 4, ViewHistory::kMostValues);
  EXPECT_GT(history.bucket_count(), 10U);
}

TEST(ViewHistoryTest, AClockThatGoesBackAddsNothing) {
  ViewHistory history;
  history.Add(ViewAt(10 * kSecondNs, 1, 100));
  history.Add(ViewAt(5 * kSecondNs, 1, 900));
  EXPECT_EQ(Parse(history)["jobs"][0]["step_ns"][0].GetDouble(), 100);
}

}  // namespace
}  // namespace lockstep::live_site
