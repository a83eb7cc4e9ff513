#include "node/live/history.h"

#include <gmock/gmock.h>

#include "base/now.h"

namespace lockstep::live {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kUnixNs = 1'790'000'000 * kSecondNs;

/// A rank that ends ten steps a second, looked at each second for `seconds` until the caller's `now_ns`.
NodePast PastOf(const char* host, const std::vector<std::string>& ranks, int64_t now_ns, int seconds) {
  NodePast past;
  past.host = host;
  past.answered_ns = now_ns;
  past.clock_offset_ns = 0;
  past.history.now_unix_ns = kUnixNs;
  for (int i = seconds; i > 0; --i) past.history.times_unix_ns.push_back(kUnixNs - i * kSecondNs);
  for (const std::string& rank : ranks) {
    control::HistorySeries series;
    series.labels = {{"job_id", "4711"}, {"rank", rank}, {"host", host}, {"pid", rank}};
    for (int i = 0; i < seconds; ++i) {
      series.figures["steps"].emplace_back(10 * i);
      series.figures["step_seconds"].emplace_back(0.8 * i);
      series.figures["comm_exposed_seconds"].emplace_back(0.2 * i);
    }
    past.history.series.push_back(std::move(series));
  }
  return past;
}

TEST(ReadingAtTest, HasWhatMetricsSaid) {
  control::History history;
  history.times_unix_ns = {kUnixNs, kUnixNs + 1};
  history.series = {
      {control::HistoryKind::kRank,
       {{"job_id", "4711"}, {"rank", "3"}, {"pid", "9"}, {"device", "cuda"}},
       {{"steps", {1, 2}}, {"forward_seconds", {0.5, std::nullopt}}, {"a_new_one", {1, 1}}}},
      {control::HistoryKind::kRank, {{"job_id", "4711"}, {"rank", "4"}}, {{"steps", {std::nullopt, 5}}}},
      {control::HistoryKind::kGpu, {{"gpu", "0"}}, {{"thermal_seconds", {1, 1}}, {"hw_thermal_seconds", {2, 2}}}},
      {control::HistoryKind::kServing,
       {{"job_id", "4711"}, {"model", "m"}},
       {{"request_p95_seconds", {0.25, 0.5}},
        {"inter_token_p99_seconds", {0.125, std::nullopt}},
        {"waiting", {3, 4}},
        {"kv_cache_usage_ratio", {0.5, std::nullopt}},
        {"preemptions", {7, 7}}}},
      {control::HistoryKind::kJob, {{"job_id", "4711"}}, {{"world_size", {8, 8}}}},
  };
  const NodeReading first = ReadingAt(history, 0);
  ASSERT_EQ(first.ranks.size(), 1u);
  EXPECT_EQ(first.ranks[0].rank, "3");
  EXPECT_EQ(first.ranks[0].pid, "9");
  EXPECT_EQ(first.ranks[0].device, "cuda");
  EXPECT_EQ(first.ranks[0].steps, 1);
  EXPECT_EQ(first.ranks[0].phase_s[static_cast<size_t>(model::Stage::kForward)], 0.5);
  EXPECT_EQ(first.ranks[0].tokens, std::nullopt);
  EXPECT_EQ(first.gpus.at("0").thermal_throttle_s, 1);
  EXPECT_EQ(first.gpus.at("0").hw_thermal_throttle_s, 2);
  EXPECT_EQ(first.serving.at(0).recent_duration_s.at(0.95), 0.25);
  EXPECT_EQ(first.serving.at(0).recent_inter_token_s.at(0.99), 0.125);
  EXPECT_EQ(first.serving.at(0).waiting, 3);
  EXPECT_EQ(first.serving.at(0).kv_cache_usage_ratio, 0.5);
  EXPECT_EQ(first.serving.at(0).preemptions, 7);
  EXPECT_EQ(first.jobs.at("4711").world_size, 8);
  const NodeReading second = ReadingAt(history, 1);
  EXPECT_EQ(second.ranks.size(), 2u);
  EXPECT_EQ(second.serving.at(0).kv_cache_usage_ratio, std::nullopt);
  EXPECT_EQ(second.ranks[0].phase_s[static_cast<size_t>(model::Stage::kForward)], std::nullopt);
  EXPECT_TRUE(ReadingAt(history, 2).ranks.empty());
}

TEST(HistoryTest, ATrackerThatRecallsKnowsThePaceAtItsFirstLook) {
  const int64_t now_ns = SteadyNow();
  const History history({PastOf("n1", {"0", "1"}, now_ns, 60)});
  JobTracker tracker(10 * kSecondNs, false);
  size_t looks = 0;
  int64_t before_ns = 0;
  history.Replay(kSecondNs, now_ns, [&](std::vector<NodeLook> past, int64_t taken_ns, int64_t unix_ns) {
    ASSERT_EQ(past.size(), 1u);
    EXPECT_FALSE(past[0].error);
    EXPECT_LE(past[0].taken_ns, taken_ns);
    EXPECT_GT(taken_ns, before_ns);
    before_ns = taken_ns;
    ++looks;
    tracker.Recall(std::move(past), taken_ns, unix_ns);
  });
  EXPECT_GE(looks, 59u);
  EXPECT_LE(looks, 61u);
  NodeLook now;
  now.host = "n1";
  now.taken_ns = now_ns;
  now.reading = ReadingAt(history.nodes()[0].history, 59);
  std::vector<NodeLook> last;
  last.push_back(std::move(now));
  const View view = tracker.Take(std::move(last), now_ns, UnixNow());
  EXPECT_EQ(view.look_count, 1u);
  ASSERT_EQ(view.jobs.size(), 1u);
  EXPECT_GE(view.jobs[0].step_history.size(), 55u);
  EXPECT_NEAR(static_cast<double>(view.jobs[0].step_history.back()), 80e6, 2);
  ASSERT_EQ(view.jobs[0].ranks.size(), 2u);
  EXPECT_NEAR(static_cast<double>(*view.jobs[0].ranks[0].step_ns), 80e6, 2);
  EXPECT_FALSE(view.jobs[0].ranks[0].is_since_start);
  EXPECT_NEAR(*view.jobs[0].ranks[0].communication_ratio, 0.25, 0.001);
}

TEST(HistoryTest, ARankThatHasEndedSinceIsGone) {
  const int64_t now_ns = SteadyNow();
  const History history({PastOf("n1", {"0", "1"}, now_ns, 20)});
  JobTracker tracker(10 * kSecondNs, false);
  history.Replay(kSecondNs, now_ns, [&](std::vector<NodeLook> past, int64_t taken_ns, int64_t unix_ns) {
    tracker.Recall(std::move(past), taken_ns, unix_ns);
  });
  NodeLook now;
  now.host = "n1";
  now.taken_ns = now_ns;
  now.reading = ReadingAt(history.nodes()[0].history, 19);
  now.reading.ranks.pop_back();
  std::vector<NodeLook> last;
  last.push_back(std::move(now));
  const View view = tracker.Take(std::move(last), now_ns, UnixNow());
  std::vector<std::string> kinds;
  for (const Alarm& alarm : view.jobs.at(0).alarms) kinds.push_back(alarm.kind);
  EXPECT_THAT(kinds, testing::Contains("rank_gone"));
}

TEST(HistoryTest, NodesThatKnowNothingHaveErrorsAndGapsOfAMomentHold) {
  const int64_t now_ns = SteadyNow();
  NodePast other = PastOf("n2", {"2"}, now_ns, 60);
  // It was silent from 40 to 10 seconds ago.
  for (auto& series : other.history.series) {
    for (auto& [name, values] : series.figures) values.erase(values.begin() + 20, values.begin() + 50);
  }
  other.history.times_unix_ns.erase(other.history.times_unix_ns.begin() + 20, other.history.times_unix_ns.begin() + 50);
  NodePast old;
  old.host = "n3";
  old.error = Error{ErrorCode::kUnsupported, "too old"};
  const History history({PastOf("n1", {"0"}, now_ns, 60), std::move(other), std::move(old)});
  std::vector<size_t> known(3);
  size_t looks = 0;
  history.Replay(kSecondNs, now_ns, [&](std::vector<NodeLook> past, int64_t, int64_t) {
    ++looks;
    for (size_t i = 0; i < 3; ++i) known[i] += past[i].error ? 0 : 1;
  });
  EXPECT_EQ(known[0], looks);
  EXPECT_GE(known[1], looks - 20);
  EXPECT_LT(known[1], looks - 15);
  EXPECT_EQ(known[2], 0u);
}

TEST(HistoryTest, HostileTimesEndAndOverflowNothing) {
  NodePast past = PastOf("n1", {"0"}, SteadyNow(), 3);
  past.history.times_unix_ns = {0, 5, INT64_MAX};
  size_t looks = 0;
  const auto count = [&](std::vector<NodeLook>, int64_t, int64_t) { ++looks; };
  History({past}).Replay(kSecondNs, SteadyNow(), count);
  past.history.now_unix_ns = 0;
  History({past}).Replay(1, SteadyNow(), count);
  History({past}).Replay(INT64_MAX, SteadyNow(), count);
  EXPECT_LE(looks, 30'000u);
  History({}).Replay(kSecondNs, SteadyNow(), count);
}

}  // namespace
}  // namespace lockstep::live
