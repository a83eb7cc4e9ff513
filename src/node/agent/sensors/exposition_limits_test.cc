#include <gmock/gmock.h>

#include <limits>
#include <map>
#include <string>

#include "node/agent/sensors/metric_spec.h"
#include "node/agent/sensors/open_metrics.h"
#include "node/agent/sensors/series_limit.h"

namespace lockstep::agent {
namespace {

const MetricSpecs kSpecs = {{"lockstep_steps_total", "counter", "job_id,rank", "Steps."},
                            {"lockstep_user_value", "gauge", "job_id,rank,name", "Values."},
                            {"lockstep_collective_calls_total", "counter", "job_id,rank,pg", "Calls."},
                            {"lockstep_up", "gauge", "", "A \"word\" \\ more."},
                            {"lockstep_wait_seconds", "histogram", "job_id", "Waits."},
                            {"lockstep_recent_seconds", "summary", "", "Recent."}};

TEST(OpenMetricsTest, IsWrittenAsTheStandardSays) {
  MetricFamilies families(kSpecs);
  families.Add("lockstep_steps_total", {{"job_id", "a\"\\\nb"}, {"rank", "0"}}, 3);
  families.Add("lockstep_up", {}, 1.5);
  prometheus::ClientMetric histogram;
  histogram.histogram.sample_count = 4;
  histogram.histogram.sample_sum = 2.5;
  histogram.histogram.bucket = {{1, 1.0}, {3, 0x1p60}};
  families.Add("lockstep_wait_seconds", {{"job_id", "j"}}, histogram);
  prometheus::ClientMetric summary;
  summary.summary.sample_count = 2;
  summary.summary.sample_sum = 1;
  summary.summary.quantile = {{0.5, std::numeric_limits<double>::quiet_NaN()}};
  families.Add("lockstep_recent_seconds", {}, summary);
  EXPECT_EQ(OpenMetricsText(families.Take()),
            "# TYPE lockstep_steps counter\n# HELP lockstep_steps Steps.\n"
            "lockstep_steps_total{job_id=\"a\\\"\\\\\\nb\",rank=\"0\"} 3\n"
            "# TYPE lockstep_up gauge\n# HELP lockstep_up A \\\"word\\\" \\\\ more.\nlockstep_up 1.5\n"
            "# TYPE lockstep_wait_seconds histogram\n# HELP lockstep_wait_seconds Waits.\n"
            "lockstep_wait_seconds_bucket{job_id=\"j\",le=\"1.0\"} 1\n"
            "lockstep_wait_seconds_bucket{job_id=\"j\",le=\"1.152921504606847e+18\"} 3\n"
            "lockstep_wait_seconds_bucket{job_id=\"j\",le=\"+Inf\"} 4\n"
            "lockstep_wait_seconds_count{job_id=\"j\"} 4\nlockstep_wait_seconds_sum{job_id=\"j\"} 2.5\n"
            "# TYPE lockstep_recent_seconds summary\n# HELP lockstep_recent_seconds Recent.\n"
            "lockstep_recent_seconds{quantile=\"0.5\"} NaN\nlockstep_recent_seconds_count 2\n"
            "lockstep_recent_seconds_sum 1\n# EOF\n");
}

TEST(OpenMetricsTest, AnExemplarStandsBehindItsBucket) {
  MetricFamilies families(kSpecs);
  prometheus::ClientMetric histogram;
  histogram.histogram.sample_count = 4;
  histogram.histogram.bucket = {{1, 1.0}, {3, 2.0}};
  families.Add("lockstep_wait_seconds", {{"job_id", "j"}}, histogram);
  families.Add("lockstep_wait_seconds", {{"job_id", "k"}}, histogram);
  const auto exemplar = [](const char* job, double value, const std::string& capture) {
    return Exemplar{"lockstep_wait_seconds", {{"job_id", job}}, {{"capture", capture}}, value, 1790000000.5};
  };
  const std::string text = OpenMetricsText(
      families.Take(), {exemplar("j", 2, "a\"b"), exemplar("j", 1.5, "second"), exemplar("k", 7, "beyond"),
                        exemplar("k", 0.5, std::string(200, 'x')), exemplar("other", 0.5, "none")});
  EXPECT_THAT(text, testing::HasSubstr("{job_id=\"j\",le=\"1.0\"} 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("{job_id=\"j\",le=\"2.0\"} 3 # {capture=\"a\\\"b\"} 2 1790000000.500\n"));
  EXPECT_THAT(text, testing::HasSubstr("{job_id=\"j\",le=\"+Inf\"} 4\n"));
  EXPECT_THAT(text, testing::HasSubstr("{job_id=\"k\",le=\"1.0\"} 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("{job_id=\"k\",le=\"+Inf\"} 4 # {capture=\"beyond\"} 7 1790000000.500\n"));
}

TEST(OpenMetricsTest, IsForThoseWhoAskForIt) {
  EXPECT_TRUE(AcceptsOpenMetrics(  // Prometheus 2.42.
      "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
      "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"));
  EXPECT_TRUE(AcceptsOpenMetrics("application/openmetrics-text"));
  for (const char* accept :
       {"", "*/*", "text/plain", "text/plain;version=0.0.4, application/openmetrics-text;version=1.0.0;q=0.5",
        "application/openmetrics-text;q=0", "application/openmetrics-text;version=0.0.1",
        "application/openmetrics-text; version=1.0.0; q=0.0", ";;;,,,", "q=1"}) {
    EXPECT_FALSE(AcceptsOpenMetrics(accept)) << accept;
  }
}

TEST(SeriesLimitTest, ValuesOfTheProgramsOwnGoFirst) {
  MetricFamilies all(kSpecs);
  for (const char* rank : {"0", "1"}) {
    for (int i = 0; i < 5; ++i) {
      all.Add("lockstep_user_value", {{"job_id", "j"}, {"rank", rank}, {"name", std::to_string(i)}}, i);
      all.Add("lockstep_collective_calls_total", {{"job_id", "j"}, {"rank", rank}, {"pg", std::to_string(i)}}, i);
    }
    all.Add("lockstep_steps_total", {{"job_id", "j"}, {"rank", rank}}, 1);
  }
  all.Add("lockstep_up", {}, 1);
  const auto count = [](const std::vector<prometheus::MetricFamily>& families, const std::string& name) {
    for (const auto& family : families) {
      if (family.name == name) return family.metric.size();
    }
    return size_t{0};
  };
  auto families = all.Take();
  SeriesDrops drops = LimitSeries({8, 100}, &families);
  EXPECT_EQ(drops.rank, 6u);
  EXPECT_EQ(drops.node, 0u);
  EXPECT_EQ(count(families, "lockstep_steps_total"), 2u);
  EXPECT_EQ(count(families, "lockstep_collective_calls_total"), 10u);
  EXPECT_EQ(count(families, "lockstep_user_value"), 4u);
  drops = LimitSeries({100, 5}, &families);
  EXPECT_EQ(drops.node, 12u);
  EXPECT_EQ(count(families, "lockstep_up"), 1u);
  EXPECT_EQ(count(families, "lockstep_user_value"), 0u);
}

TEST(SeriesLimitTest, RequestsOfAJobPushOutNeitherTheNodesOwnNorOtherJobs) {
  const MetricSpecs specs = {{"lockstep_serving_requests_total", "counter", "job_id,model", "Requests."},
                             {"lockstep_steps_total", "counter", "job_id,rank", "Steps."},
                             {"lockstep_gpu_xid_events_total", "counter", "host,gpu,xid", "Events."}};
  MetricFamilies all(specs);
  for (const char* job : {"a", "b"}) {
    for (int i = 0; i < 20; ++i) {
      all.Add("lockstep_serving_requests_total", {{"job_id", job}, {"model", std::to_string(i)}}, 1);
    }
  }
  all.Add("lockstep_steps_total", {{"job_id", "a"}, {"rank", "0"}}, 1);
  for (int i = 0; i < 8; ++i) {
    all.Add("lockstep_gpu_xid_events_total", {{"host", "n"}, {"gpu", std::to_string(i)}, {"xid", "79"}}, 0);
  }
  auto families = all.Take();
  const SeriesDrops drops = LimitSeries({.of_node = 15, .of_job = 5}, &families);
  EXPECT_EQ(drops.job, 15u);
  EXPECT_EQ(drops.node, 19u);  // Of the other job.
  std::map<std::string, size_t> counts;
  for (const auto& family : families) counts[family.name] = family.metric.size();
  EXPECT_EQ(counts["lockstep_gpu_xid_events_total"], 8u);
  EXPECT_EQ(counts["lockstep_steps_total"], 1u);
  EXPECT_EQ(counts["lockstep_serving_requests_total"], 6u);
}

TEST(SeriesLimitTest, LabelsThatPrometheusWouldRefuseTakeTheirSeriesWithThem) {
  MetricFamilies all(kSpecs);
  all.Add("lockstep_steps_total", {{"job_id", "\xff"}, {"rank", "0"}}, 1);
  all.Add("lockstep_steps_total", {{"job_id", std::string(257, 'x')}, {"rank", "0"}}, 1);
  all.Add("lockstep_steps_total", {{"job_id", "fine"}, {"rank", "0"}}, 1);
  auto families = all.Take();
  EXPECT_EQ(LimitSeries({}, &families).label, 2u);
  ASSERT_EQ(families.size(), 1u);
  EXPECT_EQ(families[0].metric.size(), 1u);
}

}  // namespace
}  // namespace lockstep::agent
