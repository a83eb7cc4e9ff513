#include "node/agent/engines/engine_reading.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "node/agent/engines/engine_endpoint.h"
#include "node/agent/engines/engine_finder.h"
#include "node/agent/engines/engine_meter.h"
#include "node/agent/sensors/serving_metric_specs.h"

namespace lockstep::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kSecondNs = 1'000'000'000;

// As vLLM 0.11 and later writes it, of two engines of data parallelism.
constexpr const char* kVllmText =
    "# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
    "# TYPE vllm:num_requests_running gauge\n"
    "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n"
    "vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 2.0\n"
    "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 7.0\n"
    "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.25\n"
    "vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"m\"} 0.75\n"
    "vllm:gpu_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.99\n"
    "vllm:prompt_tokens_total{engine=\"0\",model_name=\"m\"} 1.0e+06\n"
    "vllm:prompt_tokens_created{engine=\"0\",model_name=\"m\"} 1.7e+09\n"
    "vllm:request_success_total{engine=\"0\",finished_reason=\"stop\",model_name=\"m\"} 10.0\n"
    "vllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=\"m\"} 4.0\n"
    "vllm:request_success_total{engine=\"0\",finished_reason=\"abort\",model_name=\"m\"} 2.0\n"
    "vllm:request_success_total{engine=\"0\",finished_reason=\"error\",model_name=\"m\"} 1.0\n"
    "vllm:e2e_request_latency_seconds_sum{engine=\"0\",model_name=\"m\"} 12.5\n"
    "vllm:e2e_request_latency_seconds_bucket{engine=\"0\",le=\"0.3\",model_name=\"m\"} 1.0\n"
    "vllm:e2e_request_latency_seconds_bucket{engine=\"0\",le=\"0.5\",model_name=\"m\"} 5.0\n"
    "vllm:e2e_request_latency_seconds_bucket{engine=\"0\",le=\"+Inf\",model_name=\"m\"} 6.0\n"
    "vllm:e2e_request_latency_seconds_count{engine=\"0\",model_name=\"m\"} 6.0\n"
    "vllm:e2e_request_latency_seconds_sum{engine=\"1\",model_name=\"m\"} 2.5\n"
    "vllm:e2e_request_latency_seconds_bucket{engine=\"1\",le=\"0.3\",model_name=\"m\"} 1.0\n"
    "vllm:e2e_request_latency_seconds_bucket{engine=\"1\",le=\"0.5\",model_name=\"m\"} 1.0\n"
    "vllm:e2e_request_latency_seconds_bucket{engine=\"1\",le=\"+Inf\",model_name=\"m\"} 1.0\n";

TEST(EngineReadingTest, VllmsNamesBecomeOursAndItsEnginesAreAddedUp) {
  const auto reading = ReadEngineMetrics(kVllmText, EngineKind::kVllm);
  ASSERT_TRUE(reading);
  ASSERT_EQ(reading->models.size(), 1u);
  const EngineModel& model = reading->models[0];
  EXPECT_EQ(model.model, "m");
  EXPECT_EQ(reading->left_out_count, 0u);
  EXPECT_THAT(model.values, UnorderedElementsAre(Pair("lockstep_serving_requests_running", 5),
                                                 Pair("lockstep_serving_requests_waiting", 7),
                                                 Pair("lockstep_serving_kv_cache_usage_ratio", 0.75),
                                                 Pair("lockstep_serving_prompt_tokens_total", 1e6),
                                                 Pair("lockstep_serving_requests_total", 17),
                                                 Pair("lockstep_serving_requests_aborted_total", 2),
                                                 Pair("lockstep_serving_request_failures_total", 1)));
  const EngineHistogram& latency = model.histograms.at("lockstep_serving_request_duration_seconds");
  EXPECT_THAT(latency.buckets, ElementsAre(Pair(0.3, 2u), Pair(0.5, 6u), Pair(kInfinity, 7u)));
  EXPECT_DOUBLE_EQ(latency.sum, 15);
}

TEST(EngineReadingTest, OlderNamesServeWhereTheNewOnesAreNotThere) {
  const auto read = [](const std::string& text) { return *ReadEngineMetrics(text, EngineKind::kVllm); };
  const std::string old =
      "vllm:gpu_cache_usage_perc{model_name=\"m\"} 0.5\n"
      "vllm:time_per_output_token_seconds_bucket{le=\"0.1\",model_name=\"m\"} 3\n"
      "vllm:time_per_output_token_seconds_bucket{le=\"+Inf\",model_name=\"m\"} 3\n";
  EngineReading reading = read(old);
  EXPECT_EQ(reading.models[0].values.at("lockstep_serving_kv_cache_usage_ratio"), 0.5);
  EXPECT_EQ(reading.models[0].histograms.at("lockstep_serving_inter_token_latency_seconds").buckets[0].second, 3u);
  reading = read(old + "vllm:inter_token_latency_seconds_bucket{le=\"+Inf\",model_name=\"m\"} 9\n");
  EXPECT_EQ(reading.models[0].histograms.at("lockstep_serving_inter_token_latency_seconds").buckets[0].second, 9u);
}

TEST(EngineReadingTest, OfSglangsRanksThatSayTheSameTheFirstSpeaks) {
  const auto reading = ReadEngineMetrics(
      "sglang:num_running_reqs{model_name=\"q\",tp_rank=\"0\",dp_rank=\"0\"} 4\n"
      "sglang:num_running_reqs{model_name=\"q\",tp_rank=\"1\",dp_rank=\"0\"} 4\n"
      "sglang:num_running_reqs{model_name=\"q\",tp_rank=\"0\",dp_rank=\"1\"} 5\n"
      "sglang:num_queue_reqs{model_name=\"q\"} 2\n"
      "sglang:token_usage{model_name=\"q\"} 0.28\n"
      "sglang:num_requests_total{model_name=\"q\"} 100\n"
      "sglang:num_aborted_requests_total{model_name=\"q\"} 3\n"
      "sglang:time_to_first_token_seconds_bucket{le=\"0.1\",model_name=\"q\"} 3\n"
      "sglang:time_to_first_token_seconds_sum{model_name=\"q\"} 9\n"
      "sglang:time_to_first_token_seconds_count{model_name=\"q\"} 8\n",
      EngineKind::kSglang);
  ASSERT_TRUE(reading);
  const EngineModel& model = reading->models.at(0);
  EXPECT_THAT(model.values, UnorderedElementsAre(Pair("lockstep_serving_requests_running", 9),
                                                 Pair("lockstep_serving_requests_waiting", 2),
                                                 Pair("lockstep_serving_kv_cache_usage_ratio", 0.28),
                                                 Pair("lockstep_serving_requests_total", 100),
                                                 Pair("lockstep_serving_requests_aborted_total", 3)));
  // What lies beyond the last bound is in the count.
  EXPECT_THAT(model.histograms.at("lockstep_serving_time_to_first_token_seconds").buckets,
              ElementsAre(Pair(0.1, 3u), Pair(kInfinity, 8u)));
}

TEST(EngineReadingTest, OfTritonsLatenciesThereIsTheMean) {
  const std::string text =
      "nv_inference_request_success{model=\"t\",version=\"1\"} 8\n"
      "nv_inference_request_success{model=\"t\",version=\"2\"} 2\n"
      "nv_inference_request_failure{model=\"t\",version=\"1\",reason=\"BACKEND\"} 3\n"
      "nv_inference_request_failure{model=\"t\",version=\"1\",reason=\"CANCELED\"} 1\n"
      "nv_inference_pending_request_count{model=\"t\",version=\"1\"} 4\n"
      "nv_inference_first_response_histogram_ms_bucket{model=\"t\",version=\"1\",le=\"100\"} 7\n"
      "nv_inference_first_response_histogram_ms_bucket{model=\"t\",version=\"1\",le=\"+Inf\"} 8\n"
      "nv_inference_first_response_histogram_ms_sum{model=\"t\",version=\"1\"} 900\n"
      "nv_gpu_utilization{gpu_uuid=\"GPU-0\"} 0.5\n";
  auto reading = ReadEngineMetrics(text + "nv_inference_request_duration_us{model=\"t\",version=\"1\"} 5000000\n",
                                   EngineKind::kTriton);
  ASSERT_TRUE(reading);
  ASSERT_EQ(reading->models.size(), 1u);
  const EngineModel& model = reading->models[0];
  EXPECT_EQ(model.model, "t");
  EXPECT_THAT(model.values, UnorderedElementsAre(Pair("lockstep_serving_requests_total", 14),
                                                 Pair("lockstep_serving_request_failures_total", 3),
                                                 Pair("lockstep_serving_requests_aborted_total", 1),
                                                 Pair("lockstep_serving_requests_waiting", 4)));
  const EngineHistogram& latency = model.histograms.at("lockstep_serving_request_duration_seconds");
  EXPECT_THAT(latency.buckets, ElementsAre(Pair(kInfinity, 10u)));
  EXPECT_DOUBLE_EQ(latency.sum, 5);
  const EngineHistogram& first = model.histograms.at("lockstep_serving_time_to_first_token_seconds");
  EXPECT_THAT(first.buckets, ElementsAre(Pair(testing::DoubleEq(0.1), 7u), Pair(kInfinity, 8u)));
  EXPECT_DOUBLE_EQ(first.sum, 0.9);
  EXPECT_EQ(model.histograms.size(), 2u);
  // No bounds, no quantiles.
  RecentHistogram recent;
  recent.Take({{{kInfinity, 1}}, 1}, 0);
  recent.Take(latency, kSecondNs);
  EXPECT_EQ(recent.count(), 9u);
  EXPECT_FALSE(recent.Quantile(0.5));
  // As with --metrics-config counter_latencies=false, and before failures had reasons.
  reading =
      ReadEngineMetrics("nv_inference_request_success{model=\"t\"} 8\nnv_inference_request_failure{model=\"t\"} 2\n",
                        EngineKind::kTriton);
  EXPECT_THAT(reading->models.at(0).histograms, testing::IsEmpty());
  EXPECT_EQ(reading->models[0].values.at("lockstep_serving_request_failures_total"), 2);
  EXPECT_EQ(reading->left_out_count, 0u);
}

TEST(EngineReadingTest, AnotherServersAnswerIsRefused) {
  for (const char* text : {"", "<html>", "go_goroutines 7\n", "sglang:token_usage 0.1\n", "vllm{} 1\n"}) {
    const auto reading = ReadEngineMetrics(text, EngineKind::kVllm);
    ASSERT_FALSE(reading) << text;
    EXPECT_THAT(reading.error().message, HasSubstr("vllm:"));
  }
}

TEST(EngineReadingTest, WhatCannotBeIsLeftOutAndBounded) {
  std::string text =
      "vllm:num_requests_running{model_name=\"m\"} NaN\n"
      "vllm:num_requests_waiting{model_name=\"m\"} -1\n"
      "vllm:e2e_request_latency_seconds_bucket{le=\"1\",model_name=\"m\"} 5\n"
      "vllm:e2e_request_latency_seconds_bucket{le=\"2\",model_name=\"m\"} 4\n"
      "vllm:time_to_first_token_seconds_bucket{le=\"x\",model_name=\"m\"} 4\n";
  for (int i = 0; i < 1000; ++i) {
    text += "vllm:request_queue_time_seconds_bucket{le=\"" + std::to_string(i) + "\",model_name=\"m\"} 1\n";
    text += "vllm:num_requests_running{model_name=\"m" + std::to_string(i) + "\"} 1\n";
  }
  const auto reading = ReadEngineMetrics(text, EngineKind::kVllm);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->models.size(), kMostEngineModels);
  const auto& first = reading->models[0];
  EXPECT_TRUE(first.values.empty());
  EXPECT_FALSE(first.histograms.contains("lockstep_serving_request_duration_seconds"));
  EXPECT_LE(first.histograms.at("lockstep_serving_queue_time_seconds").buckets.size(), kMostEngineBuckets + 1);
  EXPECT_GT(reading->left_out_count, 1000u);
}

EngineHistogram Histogram(uint64_t up_to_1, uint64_t up_to_2, uint64_t all, double sum) {
  return {{{1, up_to_1}, {2, up_to_2}, {kInfinity, all}}, sum};
}

TEST(RecentHistogramTest, QuantilesAreOfTheLastMinuteAndLinearWithinABucket) {
  RecentHistogram recent;
  recent.Take(Histogram(100, 100, 100, 50), 0);
  EXPECT_EQ(recent.Quantile(0.5), std::nullopt);
  recent.Take(Histogram(110, 120, 120, 80), 30 * kSecondNs);
  EXPECT_EQ(recent.count(), 20u);
  EXPECT_DOUBLE_EQ(*recent.Quantile(0.5), 1);
  EXPECT_DOUBLE_EQ(*recent.Quantile(0.25), 0.5);
  EXPECT_DOUBLE_EQ(*recent.Quantile(0.75), 1.5);
  // What was gained in the first half minute is over a minute ago.
  recent.Take(Histogram(110, 120, 130, 120), 91 * kSecondNs);
  EXPECT_EQ(recent.count(), 10u);
  EXPECT_DOUBLE_EQ(*recent.Quantile(0.5), 2);  // Beyond the last bound.
  EXPECT_DOUBLE_EQ(recent.sum(), 40);
}

TEST(RecentHistogramTest, AnEngineThatWasStartedAnewBeginsAnew) {
  RecentHistogram recent;
  recent.Take(Histogram(100, 100, 100, 50), 0);
  recent.Take(Histogram(150, 150, 150, 90), kSecondNs);
  recent.Take(Histogram(1, 1, 1, 0.5), 2 * kSecondNs);
  EXPECT_EQ(recent.count(), 0u);
  recent.Take(Histogram(3, 3, 3, 1.5), 3 * kSecondNs);
  EXPECT_EQ(recent.count(), 2u);
  recent.Take({{{5, 10}, {kInfinity, 10}}, 20}, 4 * kSecondNs);  // Other bounds.
  EXPECT_EQ(recent.count(), 0u);
}

TEST(EngineMeterTest, SeriesAreThereWhileItAnswers) {
  EngineMeter meter;
  meter.Take(*ReadEngineMetrics(kVllmText, EngineKind::kVllm), 0);
  const auto count = [&](const std::string& model) {
    MetricFamilies out(ServingMetricSpecs());
    meter.Collect("n1:8000", "vllm", model, &out);
    size_t series = 0;
    for (const auto& family : out.Take()) {
      for (const auto& metric : family.metric) {
        EXPECT_EQ(metric.label.at(0).value, "n1:8000");
        EXPECT_EQ(metric.label.at(1).value, model.empty() ? "m" : model);
        EXPECT_EQ(metric.label.at(2).value, "vllm");
        ++series;
      }
    }
    return series;
  };
  EXPECT_EQ(count(""), 8u);
  EXPECT_EQ(count("mine"), 8u);
  meter.Miss();
  EXPECT_EQ(count(""), 0u);
}

TEST(EngineMeterTest, CountAndSumOfWhatIsRecentRise) {
  EngineMeter meter;
  std::vector<std::pair<uint64_t, double>> seen;
  for (const auto& [at_ns, count] : {std::pair(int64_t{0}, 100), {30 * kSecondNs, 120}, {100 * kSecondNs, 125}}) {
    const std::string bucket = "vllm:e2e_request_latency_seconds_bucket{model_name=\"m\",le=";
    const std::string number = std::to_string(count) + "\n";
    meter.Take(*ReadEngineMetrics(bucket + "\"1\"} " + number + bucket + "\"+Inf\"} " + number +
                                      "vllm:e2e_request_latency_seconds_sum{model_name=\"m\"} " + number,
                                  EngineKind::kVllm),
               at_ns);
    MetricFamilies out(ServingMetricSpecs());
    meter.Collect("n1:8000", "vllm", "", &out);
    for (const auto& family : out.Take()) {
      if (family.name != "lockstep_serving_recent_request_duration_seconds") continue;
      const auto& summary = family.metric.at(0).summary;
      seen.emplace_back(summary.sample_count, summary.sample_sum);
    }
  }
  EXPECT_THAT(seen, ElementsAre(Pair(120u, 120), Pair(125u, 125)));
}

TEST(EngineMeterTest, TheLastMinuteOfTimesBetweenTokensIsTold) {
  EngineMeter meter;
  std::vector<prometheus::ClientMetric::Summary> seen;
  for (const auto& [at_ns, up_to_20_ms, all] : {std::tuple(int64_t{0}, 40, 90), {30 * kSecondNs, 140, 190}}) {
    const std::string bucket = "vllm:inter_token_latency_seconds_bucket{model_name=\"m\",le=";
    meter.Take(*ReadEngineMetrics(bucket + "\"0.02\"} " + std::to_string(up_to_20_ms) + "\n" + bucket + "\"0.1\"} " +
                                      std::to_string(all) + "\n" + bucket + "\"+Inf\"} " + std::to_string(all) + "\n",
                                  EngineKind::kVllm),
               at_ns);
    MetricFamilies out(ServingMetricSpecs());
    meter.Collect("n1:8000", "vllm", "", &out);
    for (const auto& family : out.Take()) {
      if (family.name == "lockstep_serving_recent_inter_token_latency_seconds") {
        seen.push_back(family.metric.at(0).summary);
      }
    }
  }
  // What it counted before the first look is of no minute; of the hundred since all took up to 20 ms.
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].sample_count, 190u);
  EXPECT_DOUBLE_EQ(seen[0].quantile.at(0).quantile, 0.5);
  EXPECT_DOUBLE_EQ(seen[0].quantile.at(0).value, 0.01);
}

TEST(EngineUrlTest, SaysWhereAndRefusesTheRest) {
  const auto url = ParseEngineUrl("http://127.0.0.1:8000");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->url, "http://127.0.0.1:8000/metrics");
  EXPECT_EQ(DefaultEngineJob(*url, "n1"), "n1:8000");
  const auto far = ParseEngineUrl("https://[fe80::1]/m?x=1");
  ASSERT_TRUE(far);
  EXPECT_EQ(far->url, "https://[fe80::1]/m?x=1");
  EXPECT_EQ(DefaultEngineJob(*far, "n1"), "fe80::1:443");
  for (const char* bad :
       {"", "x", "ftp://a/", "file:///etc/passwd", "http://u:p@a/", "http://", "http://a:0/", "http://a:99999/"}) {
    EXPECT_FALSE(ParseEngineUrl(bad)) << bad;
  }
}

std::optional<FoundEngine> OfWords(std::vector<std::string> words) {
  std::string command;
  for (const std::string& word : words) command += word + '\0';
  return EngineOfCommand(command);
}

TEST(EngineFinderTest, KnowsServersByTheirCommand) {
  const auto found = [](EngineKind kind, uint16_t port) { return std::optional(FoundEngine{kind, port}); };
  EXPECT_EQ(OfWords({"/usr/bin/python3", "/usr/bin/vllm", "serve", "m"}), found(EngineKind::kVllm, 8000));
  EXPECT_EQ(OfWords({"vllm", "serve", "m", "--port", "8001"}), found(EngineKind::kVllm, 8001));
  EXPECT_EQ(OfWords({"python", "-m", "vllm.entrypoints.openai.api_server", "--port=9"}), found(EngineKind::kVllm, 9));
  EXPECT_EQ(OfWords({"python", "-m", "sglang.launch_server"}), found(EngineKind::kSglang, 30000));
  EXPECT_EQ(OfWords({"/opt/tritonserver/bin/tritonserver", "--http-port=8000"}), found(EngineKind::kTriton, 8002));
  EXPECT_EQ(OfWords({"tritonserver", "--metrics-port", "9002"}), found(EngineKind::kTriton, 9002));
  EXPECT_EQ(OfWords({"vllm", "serve", "m", "--port-range", "5"}), found(EngineKind::kVllm, 8000));
  for (const auto& words : std::vector<std::vector<std::string>>{{},
                                                                 {"vllm"},
                                                                 {"vllm", "bench"},
                                                                 {"vi", "vllm.py"},
                                                                 {"vllm", "serve", "--port", "x"},
                                                                 {"vllm", "serve", "--port=0"}}) {
    EXPECT_EQ(OfWords(words), std::nullopt);
  }
}

TEST(EngineFinderTest, ListenersAreThoseThatTheLoopbackReaches) {
  EXPECT_THAT(LoopbackListeners(
                  "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
                  "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0\n"
                  "   1: 00000000:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0\n"
                  "   2: 0A01A8C0:1F42 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0\n"
                  "   3: 0100007F:1F43 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0\n"
                  "   4: 00000000000000000000000001000000:7530 0:0 0A 0:0 00:0 0 7 0 1\n"
                  "rubbish\n"),
              ElementsAre(Pair(8000, 1000u), Pair(8001, 0u), Pair(30000, 7u)));
}

}  // namespace
}  // namespace lockstep::agent
