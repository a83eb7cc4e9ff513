#include "node/agent/history/recorder.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/now.h"
#include "base/temporary_folder.h"
#include "base/testing/checkout.h"

namespace lockstep::agent {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kNowNs = 1'790'000'000 * kSecondNs;

ClientMetric Sample(const HistoryLabels& labels, double value) {
  ClientMetric metric;
  for (const auto& [name, text] : labels) metric.label.push_back({name, text});
  metric.counter.value = metric.gauge.value = value;
  return metric;
}

MetricFamily Family(const char* name, MetricType type, std::vector<ClientMetric> metrics) {
  MetricFamily family;
  family.name = name;
  family.type = type;
  family.metric = std::move(metrics);
  return family;
}

std::optional<double> ValueOf(const HistorySample& sample, std::string_view name) {
  const auto& figures = FiguresOf(sample.kind);
  for (size_t i = 0; i < figures.size(); ++i) {
    if (name == figures[i].name && sample.values.at(i)) return FromStored(figures[i], *sample.values.at(i));
  }
  return std::nullopt;
}

TEST(FiguresTest, TablesFitTheirBitsAndHaveEachNameOnce) {
  for (size_t kind = 0; kind < kHistoryKinds; ++kind) {
    const auto& figures = FiguresOf(static_cast<HistoryKind>(kind));
    EXPECT_LE(figures.size(), kMostFigures);
    std::map<std::string, int> names;
    for (const Figure& figure : figures) EXPECT_EQ(++names[figure.name], 1) << figure.name;
  }
}

TEST(FiguresTest, TheDocumentHasEach) {
  std::ifstream stream(Checkout() / "docs/formats/history.md");
  const std::string document((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  for (size_t kind = 0; kind < kHistoryKinds; ++kind) {
    for (const Figure& figure : FiguresOf(static_cast<HistoryKind>(kind))) {
      const std::string name = figure.name;
      // "and the same of"
      if (name.starts_with("first_token_") || name.starts_with("inter_token_")) continue;
      EXPECT_THAT(document, testing::HasSubstr("`" + name + "`"));
    }
  }
}

TEST(FiguresTest, WhatDoesNotFitIsAbsent) {
  const Figure figure = {"x", "y", 1e6};
  EXPECT_EQ(ToStored(figure, 1.5), 1'500'000);
  EXPECT_EQ(ToStored(figure, 1e300), std::nullopt);
  EXPECT_EQ(ToStored(figure, -1e300), std::nullopt);
}

TEST(HistorySamplerTest, JoinsWhatFamiliesSayOfOneThing) {
  HistorySampler sampler;
  const HistoryLabels rank = {{"job_id", "4711"}, {"rank", "0"}, {"host", "n1"}};
  auto with = [&](const char* name, const char* value) {
    HistoryLabels labels = rank;
    labels[name] = value;
    return labels;
  };
  sampler.Take(Family("lockstep_steps_total", MetricType::Counter, {Sample(rank, 12)}));
  sampler.Take(Family("lockstep_step_phase_seconds_total", MetricType::Counter,
                      {Sample(with("phase", "input"), 0.25), Sample(with("phase", "forward"), 1.5)}));
  // Without the host, by group and operation: added up.
  const HistoryLabels group = {{"job_id", "4711"}, {"rank", "0"}, {"pg", "a"}, {"op", "all_reduce"}};
  sampler.Take(Family("lockstep_collective_bytes_total", MetricType::Counter, {Sample(group, 100), Sample(group, 50)}));
  sampler.Take(Family("lockstep_collective_oldest_inflight_seconds", MetricType::Gauge,
                      {Sample(group, 3), Sample(group, 7), Sample(group, 1)}));
  sampler.Take(Family("lockstep_rank_info", MetricType::Gauge, {Sample(with("pid", "42"), 1)}));
  sampler.Take(Family("lockstep_job_world_size", MetricType::Gauge, {Sample({{"job_id", "4711"}}, 8)}));
  sampler.Take(
      Family("lockstep_gpu_temperature_celsius", MetricType::Gauge,
             {Sample({{"gpu", "0"}, {"sensor", "gpu"}}, 60), Sample({{"gpu", "0"}, {"sensor", "memory"}}, 71)}));
  sampler.Take(Family("lockstep_gpu_memory_used_bytes", MetricType::Gauge,
                      {Sample({{"gpu", "0"}}, 1e9), Sample({{"gpu", "0"}, {"gi", "2"}}, 5)}));
  sampler.Take(Family("lockstep_something_else", MetricType::Gauge, {Sample(rank, 1)}));
  const std::vector<HistorySample> samples = sampler.Finish(100);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].kind, HistoryKind::kRank);
  EXPECT_EQ(samples[0].labels, with("pid", "42"));
  EXPECT_EQ(ValueOf(samples[0], "steps"), 12);
  EXPECT_EQ(ValueOf(samples[0], "input_seconds"), 0.25);
  EXPECT_EQ(ValueOf(samples[0], "forward_seconds"), 1.5);
  EXPECT_EQ(ValueOf(samples[0], "backward_seconds"), std::nullopt);
  EXPECT_EQ(ValueOf(samples[0], "collective_bytes"), 150);
  EXPECT_EQ(ValueOf(samples[0], "collective_oldest_seconds"), 7);
  EXPECT_EQ(ValueOf(samples[1], "temperature_celsius"), 71);
  EXPECT_EQ(ValueOf(samples[1], "memory_used_bytes"), 1e9);
  EXPECT_EQ(ValueOf(samples[2], "world_size"), 8);
  EXPECT_TRUE(sampler.Finish(100).empty());
}

TEST(HistorySamplerTest, ARankThatSensorsSeeAtDifferentTimesIsOne) {
  HistorySampler sampler;
  const HistoryLabels rank = {{"job_id", "4711"}, {"rank", "0"}, {"host", "n1"}};
  HistoryLabels info = rank;
  info["pid"] = "42";
  const auto look = [&](bool is_named) {
    sampler.Take(Family("lockstep_rank_resident_memory_bytes", MetricType::Gauge, {Sample(rank, 5)}));
    if (is_named) sampler.Take(Family("lockstep_rank_info", MetricType::Gauge, {Sample(info, 1)}));
    return sampler.Finish(100);
  };
  EXPECT_TRUE(look(false).empty());  // Nobody knows yet who it is.
  for (const bool is_named : {true, true, false}) {
    const std::vector<HistorySample> samples = look(is_named);
    ASSERT_EQ(samples.size(), 1u);
    EXPECT_EQ(samples[0].labels, info);
    EXPECT_EQ(ValueOf(samples[0], "resident_bytes"), 5);
  }
}

TEST(HistorySamplerTest, QuantilesAreThoseOfTheSummary) {
  HistorySampler sampler;
  ClientMetric metric = Sample({{"job_id", "1"}, {"model", "m"}, {"engine", "e"}}, 0);
  metric.summary.quantile = {{0.5, 0.1}, {0.99, std::nan("")}};
  sampler.Take(Family("lockstep_serving_recent_request_duration_seconds", MetricType::Summary, {metric}));
  const std::vector<HistorySample> samples = sampler.Finish(1);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(ValueOf(samples[0], "request_p50_seconds"), 0.1);
  EXPECT_EQ(ValueOf(samples[0], "request_p99_seconds"), std::nullopt);
}

class HealthWatchTest : public testing::Test {
 protected:
  std::vector<std::string> Look(int64_t at_s, const std::vector<MetricFamily>& families,
                                const std::vector<HistorySample>& samples = {}) {
    watch_.Begin(at_s * kSecondNs);
    for (const MetricFamily& family : families) watch_.Take(family);
    std::vector<std::string> kinds;
    for (const control::HistoryEvent& event : watch_.Finish(samples)) {
      EXPECT_EQ(event.unix_ns, at_s * kSecondNs);
      kinds.push_back(event.kind + " " + std::to_string(static_cast<int64_t>(event.count)));
    }
    return kinds;
  }
  static MetricFamily Xid(std::vector<std::pair<const char*, double>> counts) {
    std::vector<ClientMetric> metrics;
    for (const auto& [xid, count] : counts) metrics.push_back(Sample({{"gpu", "0"}, {"xid", xid}}, count));
    return Family("lockstep_gpu_xid_events_total", MetricType::Counter, metrics);
  }
  HealthWatch watch_;
};

TEST_F(HealthWatchTest, CountersTellBySomuchAsTheyGrow) {
  EXPECT_THAT(Look(1, {Xid({{"79", 4}})}), testing::IsEmpty());
  EXPECT_THAT(Look(2, {Xid({{"79", 4}})}), testing::IsEmpty());
  EXPECT_THAT(Look(3, {Xid({{"79", 6}})}), testing::ElementsAre("gpu_xid 2"));
  // A code that nobody has seen before.
  EXPECT_THAT(Look(4, {Xid({{"79", 6}, {"13", 1}})}), testing::ElementsAre("gpu_xid 1"));
  // It is not told again, also when it was out of sight.
  EXPECT_THAT(Look(5, {}), testing::IsEmpty());
  EXPECT_THAT(Look(6, {Xid({{"79", 6}, {"13", 1}})}), testing::IsEmpty());
}

TEST_F(HealthWatchTest, WhatGoesOnIsToldOnce) {
  const auto throttle = [](double seconds) {
    return Family(
        "lockstep_gpu_throttle_seconds_total", MetricType::Counter,
        {Sample({{"gpu", "0"}, {"reason", "thermal"}}, seconds), Sample({{"gpu", "0"}, {"reason", "power"}}, seconds)});
  };
  EXPECT_THAT(Look(100, {throttle(1)}), testing::IsEmpty());
  EXPECT_THAT(Look(101, {throttle(2)}), testing::ElementsAre("gpu_throttled 1"));
  EXPECT_THAT(Look(102, {throttle(3)}), testing::IsEmpty());
  EXPECT_THAT(Look(150, {throttle(4)}), testing::IsEmpty());
  EXPECT_THAT(Look(209, {throttle(5)}), testing::IsEmpty());
  EXPECT_THAT(Look(270, {throttle(6)}), testing::ElementsAre("gpu_throttled 1"));
}

TEST_F(HealthWatchTest, LinksGoAndCome) {
  const auto port = [](double active) {
    return Family("lockstep_ib_port_active", MetricType::Gauge,
                  {Sample({{"device", "mlx5_0"}, {"port", "1"}}, active)});
  };
  EXPECT_THAT(Look(1, {port(1)}), testing::IsEmpty());
  EXPECT_THAT(Look(2, {port(0)}), testing::ElementsAre("ib_link_down 1"));
  EXPECT_THAT(Look(3, {port(0)}), testing::IsEmpty());
  EXPECT_THAT(Look(4, {port(1)}), testing::ElementsAre("ib_link_up 1"));
}

TEST_F(HealthWatchTest, RanksComeAndEnd) {
  const auto rank = [](const char* number, const char* pid) {
    return HistorySample{HistoryKind::kRank, {{"job_id", "1"}, {"rank", number}, {"pid", pid}}, {}};
  };
  EXPECT_THAT(Look(1, {}, {rank("0", "7")}), testing::IsEmpty());
  EXPECT_THAT(Look(2, {}, {rank("0", "7"), rank("1", "8")}), testing::ElementsAre("rank_started 1"));
  EXPECT_THAT(Look(3, {}, {rank("0", "9"), rank("1", "8")}), testing::ElementsAre("rank_started 1", "rank_ended 1"));
}

class AskHistoryTest : public testing::Test {
 protected:
  AskHistoryTest() {
    HistoryFile::Options options;
    options.path = folder_.File("history");
    options.keep_ms = {900'000, 21'600'000};
    file_ = std::move(*HistoryFile::Open(options, kNowNs / 1'000'000, nullptr));
  }
  void Append(HistoryTier tier, int64_t age_s, const std::string& job, int64_t steps) {
    HistorySample sample{HistoryKind::kRank, {{"job_id", job}, {"rank", "0"}}, {}};
    sample.values[1] = steps;
    ASSERT_TRUE(file_->Append(tier, kNowNs / 1'000'000 - age_s * 1000, {sample}, {}));
  }
  control::History Ask(const control::HistoryQuery& query = {}) { return AskHistory(file_->View(), query, kNowNs); }

  TemporaryFolder folder_{"recorder_test"};
  std::unique_ptr<HistoryFile> file_;
};

TEST_F(AskHistoryTest, TheCoarseTierAnswersForWhatIsBeforeTheFineOne) {
  for (int64_t age_s = 100; age_s >= 0; age_s -= 10) Append(HistoryTier::kCoarse, age_s, "a", 1000 - age_s);
  for (int64_t age_s = 30; age_s >= 1; --age_s) Append(HistoryTier::kFine, age_s, "a", 1000 - age_s);
  const control::History history = Ask({.points = 2000});
  ASSERT_EQ(history.series.size(), 1u);
  std::vector<int64_t> ages_s;
  for (const int64_t time_ns : history.times_unix_ns) ages_s.push_back((kNowNs - time_ns) / kSecondNs);
  std::vector<int64_t> expected = {100, 90, 80, 70, 60, 50, 40};
  for (int64_t age_s = 30; age_s >= 1; --age_s) expected.push_back(age_s);
  EXPECT_EQ(ages_s, expected);
  const auto& steps = history.series[0].figures.at("steps");
  ASSERT_EQ(steps.size(), ages_s.size());
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], 1000 - ages_s[i]);
  EXPECT_EQ(history.series[0].figures.size(), 1u);
  EXPECT_FALSE(history.is_cut);
}

TEST_F(AskHistoryTest, FewerPointsAreTheLastLooksOfSpans) {
  for (int64_t age_s = 600; age_s >= 1; --age_s) Append(HistoryTier::kFine, age_s, "a", 1000 - age_s);
  const control::History history = Ask({.points = 10});
  ASSERT_LE(history.times_unix_ns.size(), 11u);
  ASSERT_GE(history.times_unix_ns.size(), 9u);
  EXPECT_EQ(history.times_unix_ns.back(), kNowNs - kSecondNs);
  for (size_t i = 0; i < history.times_unix_ns.size(); ++i) {
    EXPECT_EQ(history.series[0].figures.at("steps")[i], 1000 - (kNowNs - history.times_unix_ns[i]) / kSecondNs);
  }
}

TEST_F(AskHistoryTest, OneJobOrATimeOnly) {
  Append(HistoryTier::kFine, 20, "a", 1);
  Append(HistoryTier::kFine, 10, "b", 2);
  Append(HistoryTier::kFine, 5, "a", 3);
  const auto jobs = [](const control::History& history) {
    std::vector<std::string> found;
    for (const auto& series : history.series) found.push_back(series.labels.at("job_id"));
    return found;
  };
  EXPECT_THAT(jobs(Ask()), testing::ElementsAre("a", "b"));
  EXPECT_THAT(jobs(Ask({.job_id = "b"})), testing::ElementsAre("b"));
  EXPECT_THAT(jobs(Ask({.since_unix_ns = kNowNs - 15 * kSecondNs, .until_unix_ns = kNowNs - 5 * kSecondNs})),
              testing::ElementsAre("b"));
  EXPECT_THAT(jobs(Ask({.since_unix_ns = kNowNs})), testing::IsEmpty());
  EXPECT_THAT(Ask({.since_unix_ns = kNowNs}).times_unix_ns, testing::IsEmpty());
}

TEST_F(AskHistoryTest, AnAnswerIsBounded) {
  for (int64_t age_s = 100; age_s >= 1; --age_s) {
    std::vector<HistorySample> samples;
    for (int rank = 0; rank < 500; ++rank) {
      samples.push_back({HistoryKind::kRank, {{"job_id", "a"}, {"rank", std::to_string(rank)}}, {}});
      for (size_t i = 0; i < 29; ++i) samples.back().values.at(i) = age_s;
    }
    ASSERT_TRUE(file_->Append(HistoryTier::kFine, kNowNs / 1'000'000 - age_s * 1000, samples, {}));
  }
  const control::History history = Ask({.points = 2000});
  size_t values = 0;
  for (const auto& series : history.series) {
    for (const auto& [name, figure] : series.figures) values += figure.size();
  }
  EXPECT_EQ(history.series.size(), 500u);
  EXPECT_LE(values, control::kMostHistoryValues);
  EXPECT_GT(values, control::kMostHistoryValues / 2);
  EXPECT_TRUE(control::ReadHistory(ToJson(history)));
}

TEST(HistoryRecorderTest, LooksEachSecondAndIsStoppedAtOnce) {
  const TemporaryFolder folder("recorder_test");
  std::atomic<int> looks = 0;
  HistoryRecorder::Options options;
  options.path = folder.File("history");
  options.host = "n1";
  options.visit = [&](const auto& take) {
    take(Family("lockstep_rank_info", MetricType::Gauge,
                {Sample({{"job_id", "4711"}, {"rank", "0"}, {"pid", "7"}}, 1)}));
    take(Family("lockstep_steps_total", MetricType::Counter,
                {Sample({{"job_id", "4711"}, {"rank", "0"}}, static_cast<double>(++looks))}));
  };
  {
    const auto recorder = HistoryRecorder::Open(options);
    ASSERT_TRUE(recorder);
    while ((*recorder)->Ask({.points = 2000}).times_unix_ns.size() < 3) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    const control::History history = (*recorder)->Ask({.points = 2000});
    EXPECT_EQ(history.host, "n1");
    ASSERT_EQ(history.series.size(), 1u);
    EXPECT_EQ(history.series[0].figures.at("steps")[0], 1);
    EXPECT_EQ(history.series[0].figures.at("steps")[2], 3);
    EXPECT_LE((*recorder)->bytes(), (*recorder)->limit_bytes());
  }
  const auto again = HistoryRecorder::Open(options);
  ASSERT_TRUE(again);
  EXPECT_GE((*again)->Ask({.points = 2000}).times_unix_ns.size(), 3u);
}

}  // namespace
}  // namespace lockstep::agent
