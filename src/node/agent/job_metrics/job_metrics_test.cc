#include "node/agent/job_metrics/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "node/agent/sensors/serving_metric_specs.h"

namespace lockstep::agent {
namespace {

using ingest::span_follow::Followed;
using ingest::span_follow::FollowedRequest;
using model::At;
using model::Stage;
using Kind = FollowedRequest::Kind;

/// Names by number, as a process makes them.
class Names {
 public:
  uint32_t operator()(const std::string& name) {
    names_.push_back(name);
    return static_cast<uint32_t>(names_.size());
  }
  std::function<const std::string&(uint32_t)> Lookup() const {
    return [this](uint32_t number) -> const std::string& { return names_.at(number - 1); };
  }

 private:
  std::vector<std::string> names_;
};

RankIdentity Identity(int32_t pid, std::optional<int32_t> rank) {
  return {"job7", rank, 4, rank, pid, "node3", "", ""};
}

std::vector<prometheus::MetricFamily>::const_iterator Find(const std::vector<prometheus::MetricFamily>& families,
                                                           std::string_view name) {
  return std::find_if(families.begin(), families.end(), [&](const auto& family) { return family.name == name; });
}

/// Value of the sample that has all of `labels`; nullopt: absent, or more than one.
std::optional<double> ValueOf(const JobMetrics& jobs, const std::string& name, const MetricLabels& labels) {
  std::optional<double> value;
  for (const auto& family : jobs.Collect()) {
    if (family.name != name) continue;
    for (const auto& metric : family.metric) {
      const bool has_all = std::all_of(labels.begin(), labels.end(), [&](const auto& wanted) {
        return std::any_of(metric.label.begin(), metric.label.end(), [&](const auto& label) {
          return label.name == wanted.first && label.value == wanted.second;
        });
      });
      if (!has_all) continue;
      if (value) return std::nullopt;
      value = family.type == prometheus::MetricType::Histogram ? static_cast<double>(metric.histogram.sample_count)
              : family.type == prometheus::MetricType::Counter ? metric.counter.value
                                                               : metric.gauge.value;
    }
  }
  return value;
}

double PhaseSeconds(const RankMeter& meter, Stage stage) {
  return static_cast<double>(At(meter.stage_ns(), stage)) / 1e9;
}

TEST(RankMeterTest, PhasesAddUpToTheStepAndAPartInsideAnotherCountsOnce) {
  Names names;
  const uint32_t forward = names("train/Forward");
  const uint32_t backward = names("backward");
  const uint32_t reduce = names("all_reduce");
  const uint32_t attention = names("attention");
  Followed followed;
  // A step of 100 ms: forward 10-30 with a nameless part inside, backward 30-80 with 15 ms of all_reduce in it.
  followed.spans = {{1, attention, 12 * kMillisecondNs, 5 * kMillisecondNs},
                    {1, forward, 10 * kMillisecondNs, 20 * kMillisecondNs},
                    {1, reduce, 50 * kMillisecondNs, 15 * kMillisecondNs},
                    {1, backward, 30 * kMillisecondNs, 50 * kMillisecondNs},
                    {2, forward, 0, 90 * kMillisecondNs}};  // Another thread's.
  followed.steps = {{1, 7, 0, 100 * kMillisecondNs}};
  RankMeter meter;
  meter.Take(followed, names.Lookup());
  EXPECT_EQ(meter.step_count(), 1u);
  EXPECT_EQ(meter.step_ns(), 100 * kMillisecondNs);
  EXPECT_DOUBLE_EQ(PhaseSeconds(meter, Stage::kForward), 0.020);
  EXPECT_DOUBLE_EQ(PhaseSeconds(meter, Stage::kBackward), 0.035);
  EXPECT_DOUBLE_EQ(PhaseSeconds(meter, Stage::kCommunication), 0.015);
  EXPECT_DOUBLE_EQ(PhaseSeconds(meter, Stage::kOther), 0.030);
  EXPECT_EQ(meter.last_step(), 7);
  EXPECT_EQ(meter.last_step_end_ns(), 100 * kMillisecondNs);
}

TEST(RankMeterTest, PartsOfAStepMayComeBeforeItsEndDoes) {
  Names names;
  const uint32_t forward = names("forward");
  RankMeter meter;
  Followed first;
  first.spans = {{1, forward, 10 * kMillisecondNs, 20 * kMillisecondNs}};
  meter.Take(first, names.Lookup());
  EXPECT_EQ(meter.step_count(), 0u);
  Followed second;
  second.spans = {{1, forward, 110 * kMillisecondNs, 5 * kMillisecondNs}};
  second.steps = {{1, 1, 0, 100 * kMillisecondNs}, {1, 2, 100 * kMillisecondNs, 100 * kMillisecondNs}};
  meter.Take(second, names.Lookup());
  EXPECT_DOUBLE_EQ(PhaseSeconds(meter, Stage::kForward), 0.025);
  EXPECT_DOUBLE_EQ(PhaseSeconds(meter, Stage::kOther), 0.175);
  EXPECT_EQ(meter.new_steps().size(), 2u);
}

TEST(RankMeterTest, StepsOfOneReadingHaveTheirOwnPartsInWhateverOrderTheseCome) {
  Names names;
  const uint32_t forward = names("forward");
  const uint32_t backward = names("backward");
  RankMeter meter;
  Followed followed;
  followed.spans = {{1, backward, 250 * kMillisecondNs, 20 * kMillisecondNs},
                    {1, forward, 110 * kMillisecondNs, 10 * kMillisecondNs},
                    {2, forward, 20 * kMillisecondNs, 40 * kMillisecondNs},
                    {1, forward, 10 * kMillisecondNs, 5 * kMillisecondNs},
                    {1, backward, 150 * kMillisecondNs, 5 * kMillisecondNs}};
  followed.steps = {{1, 1, 0, 100 * kMillisecondNs},
                    {2, 1, 0, 100 * kMillisecondNs},
                    {1, 2, 100 * kMillisecondNs, 100 * kMillisecondNs}};
  meter.Take(followed, names.Lookup());
  EXPECT_DOUBLE_EQ(PhaseSeconds(meter, Stage::kForward), 0.055);
  EXPECT_DOUBLE_EQ(PhaseSeconds(meter, Stage::kBackward), 0.005);
  followed.spans.clear();
  followed.steps = {{1, 3, 200 * kMillisecondNs, 100 * kMillisecondNs}};
  meter.Take(followed, names.Lookup());
  EXPECT_DOUBLE_EQ(PhaseSeconds(meter, Stage::kBackward), 0.025);
}

TEST(RankMeterTest, ThePhaseUnderWayIsTheInnermostOne) {
  Names names;
  const uint32_t step = names("");
  const uint32_t forward = names("forward");
  const uint32_t inner = names("attention");
  const uint32_t reduce = names("all_reduce");
  RankMeter meter;
  EXPECT_FALSE(meter.open_phase());
  const auto take = [&](Followed followed) {
    meter.Take(followed, names.Lookup());
    return meter.open_phase();
  };
  Followed followed;
  followed.open = {{1, step, 100, 0}, {1, forward, 110, 0}, {1, inner, 120, 0}};
  auto phase = take(followed);
  ASSERT_TRUE(phase);
  EXPECT_EQ(phase->stage, Stage::kForward);
  EXPECT_EQ(phase->since_ns, 110);
  followed.open = {{1, step, 100, 0}, {1, forward, 110, 0}, {1, reduce, 130, 0}};
  EXPECT_EQ(take(followed)->stage, Stage::kCommunication);
  // Back in forward, since what was in it has ended; another thread's end says nothing.
  followed.open = {{1, step, 100, 0}, {1, forward, 110, 0}};
  followed.spans = {{1, reduce, 130, 20}, {2, reduce, 130, 90}};
  phase = take(followed);
  EXPECT_EQ(phase->stage, Stage::kForward);
  EXPECT_EQ(phase->since_ns, 150);
  followed.open = {{1, step, 100, 0}};
  followed.spans = {{1, forward, 110, 50}};
  phase = take(followed);
  EXPECT_EQ(phase->stage, Stage::kOther);
  EXPECT_EQ(phase->since_ns, 160);
  EXPECT_FALSE(take({}));
}

TEST(JobMetricsTest, APhaseIsToldWhenItIsLong) {
  Names names;
  const uint32_t step = names("");
  const uint32_t input = names("input");
  JobMetrics jobs;
  Followed followed;
  followed.open = {{1, step, UnixNow() - 60 * kSecondNs, 0}, {1, input, UnixNow() - 50 * kSecondNs, 0}};
  jobs.Take(Identity(7, 1), followed, names.Lookup());
  const auto value = [&] {
    return ValueOf(jobs, "lockstep_rank_long_phase_seconds", {{"rank", "1"}, {"phase", "input"}});
  };
  ASSERT_TRUE(value());
  EXPECT_GE(*value(), 50);
  // A rank whose records are dropped may long be elsewhere.
  followed.dropped_count = 1;
  jobs.Take(Identity(7, 1), followed, names.Lookup());
  EXPECT_FALSE(value());
  followed.dropped_count = 0;
  followed.open[1].start_ns = UnixNow();
  jobs.Take(Identity(8, 1), followed, names.Lookup());
  jobs.Forget(7);
  EXPECT_FALSE(value());
}

TEST(RankMeterTest, RequestsThatNeverEndGiveWayToNewerOnes) {
  Names names;
  const uint32_t generate = names("generate");
  RankMeter meter;
  Followed followed;
  for (uint64_t i = 0; i < 70'000; ++i) followed.requests.push_back({Kind::kBegin, i, generate, 0, 0, false});
  followed.requests.push_back({Kind::kEnd, 69'999, generate, 5 * kMillisecondNs, 0, false});
  followed.requests.push_back({Kind::kEnd, 0, generate, 5 * kMillisecondNs, 0, false});
  meter.Take(followed, names.Lookup());
  ASSERT_EQ(meter.ended_requests().size(), 1u);
  EXPECT_EQ(meter.ended_requests()[0].duration_ns, 5 * kMillisecondNs);
  EXPECT_EQ(meter.missed_count(), 70'000u - 65'536u);
  EXPECT_EQ(meter.open_request_count(), 65'535u);
}

TEST(RankMeterTest, AmountsAreAddedAndOtherCountersKeepTheirNewestValue) {
  Names names;
  const uint32_t tokens = names("tokens");
  const uint32_t loss = names("loss");
  Followed followed;
  followed.counters = {{tokens, 1, 100}, {loss, 2, 3.5}, {tokens, 3, 50}, {loss, 4, 2.5}, {tokens, 5, -7}};
  RankMeter meter;
  meter.Take(followed, names.Lookup());
  EXPECT_EQ(meter.amounts().at("tokens"), 150);
  EXPECT_EQ(meter.values().at("loss"), 2.5);
}

TEST(RankMeterTest, NamesWithoutEndAreBounded) {
  Names names;
  Followed followed;
  for (int i = 0; i < 1000; ++i) followed.counters.push_back({names("value" + std::to_string(i)), i, 1.0});
  RankMeter meter;
  meter.Take(followed, names.Lookup());
  EXPECT_EQ(meter.values().size(), 256u);
  EXPECT_EQ(meter.left_out_count(), 744u);
}

TEST(RankMeterTest, ARequestIsTimedFromItsMarks) {
  Names names;
  const uint32_t generate = names("generate");
  Followed followed;
  followed.requests = {{Kind::kBegin, 9, generate, 0, 0, false},
                       {Kind::kOutput, 9, 0, 40 * kMillisecondNs, 1, false},
                       {Kind::kOutput, 9, 0, 60 * kMillisecondNs, 1, false},
                       {Kind::kOutput, 9, 0, 100 * kMillisecondNs, 4, false}};
  RankMeter meter;
  const auto lookup = [&](uint32_t number) -> const std::string& {
    static const std::string none;
    return number == 0 ? none : names.Lookup()(number);
  };
  meter.Take(followed, lookup);
  EXPECT_EQ(meter.OpenRequests().at("generate"), 1u);
  followed.requests = {{Kind::kEnd, 9, 0, 110 * kMillisecondNs, 0, false},
                       {Kind::kEnd, 10, 0, 110 * kMillisecondNs, 0, true}};
  meter.Take(followed, lookup);
  ASSERT_EQ(meter.ended_requests().size(), 1u);  // Of 10 nobody knows when it began.
  const EndedRequest& ended = meter.ended_requests()[0];
  EXPECT_EQ(ended.duration_ns, 110 * kMillisecondNs);
  EXPECT_EQ(ended.first_output_ns, 40 * kMillisecondNs);
  EXPECT_EQ(ended.per_output_ns, 12 * kMillisecondNs);
  EXPECT_EQ(ended.output_count, 6u);
  EXPECT_THAT(ended.gaps_ns,
              testing::ElementsAre(testing::Pair(20 * kMillisecondNs, 1), testing::Pair(10 * kMillisecondNs, 4)));
  EXPECT_EQ(meter.open_request_count(), 0u);
}

TEST(JobMetricsTest, ARankWithoutAFileIsThereAndSaysNothingElse) {
  JobMetrics jobs;
  jobs.See(Identity(100, 2));
  EXPECT_EQ(ValueOf(jobs, "lockstep_rank_up", {{"job_id", "job7"}, {"rank", "2"}, {"host", "node3"}}), 1.0);
  EXPECT_EQ(ValueOf(jobs, "lockstep_job_world_size", {{"job_id", "job7"}}), 4.0);
  EXPECT_EQ(ValueOf(jobs, "lockstep_steps_total", {}), std::nullopt);
  EXPECT_EQ(ValueOf(jobs, "lockstep_rank_last_progress_timestamp_seconds", {}), std::nullopt);
}

TEST(JobMetricsTest, RanksOfAJobThatNobodyNamesSayNoWorldOfWhichTheyWouldBeThePartThatIsLeft) {
  JobMetrics jobs;
  RankIdentity identity = Identity(100, 2);
  identity.job_id.clear();
  jobs.See(identity);
  EXPECT_EQ(ValueOf(jobs, "lockstep_rank_up", {{"job_id", "pid-100"}, {"rank", "2"}}), 1.0);
  EXPECT_EQ(ValueOf(jobs, "lockstep_job_world_size", {}), std::nullopt);
}

TEST(JobMetricsTest, OfARankWhoseRecordsAreDroppedNobodyKnowsWhenItsNewestStepWas) {
  const std::string progress = "lockstep_rank_last_progress_timestamp_seconds";
  Names names;
  JobMetrics jobs;
  Followed followed;
  followed.steps = {{1, 0, 0, 100 * kMillisecondNs}};
  followed.dropped_count = 5;  // Its step was recorded all the same.
  jobs.Take(Identity(11, 0), followed, names.Lookup());
  EXPECT_EQ(ValueOf(jobs, progress, {{"rank", "0"}}), 0.1);
  followed.steps.clear();
  jobs.Take(Identity(11, 0), followed, names.Lookup());
  EXPECT_EQ(ValueOf(jobs, progress, {{"rank", "0"}}), 0.1);  // Nothing is dropped: it makes no steps.
  followed.dropped_count = 6;
  jobs.Take(Identity(11, 0), followed, names.Lookup());
  EXPECT_EQ(ValueOf(jobs, progress, {{"rank", "0"}}), std::nullopt);
  jobs.Take(Identity(11, 0), followed, names.Lookup());
  EXPECT_EQ(ValueOf(jobs, progress, {{"rank", "0"}}), std::nullopt);
  followed.steps = {{1, 1, 100 * kMillisecondNs, 100 * kMillisecondNs}};
  jobs.Take(Identity(11, 0), followed, names.Lookup());
  EXPECT_EQ(ValueOf(jobs, progress, {{"rank", "0"}}), 0.2);
}

TEST(JobMetricsTest, CommunicationThatCannotBeToldApartIsAbsentAndItsTimeIsNobodys) {
  Names names;
  JobMetrics jobs;
  Followed followed;
  followed.spans = {{1, names("backward"), 0, 50 * kMillisecondNs},
                    {1, names("comm"), 60 * kMillisecondNs, 10 * kMillisecondNs}};
  followed.steps = {{1, 0, 0, 100 * kMillisecondNs}};
  jobs.Take(Identity(11, 0), followed, names.Lookup());
  const std::string phases = "lockstep_step_phase_seconds_total";
  EXPECT_DOUBLE_EQ(ValueOf(jobs, phases, {{"phase", "comm_exposed"}}).value_or(-1), 0.010);
  EXPECT_DOUBLE_EQ(ValueOf(jobs, phases, {{"phase", "other"}}).value_or(-1), 0.040);
  followed = {};
  followed.counters = {{names("comm_exposed_unknown"), 0, 1}, {names("rank_resident_memory_bytes"), 0, 1e9}};
  jobs.Take(Identity(11, 0), followed, names.Lookup());
  EXPECT_EQ(ValueOf(jobs, phases, {{"phase", "comm_exposed"}}), std::nullopt);
  EXPECT_DOUBLE_EQ(ValueOf(jobs, phases, {{"phase", "other"}}).value_or(-1), 0.050);
  EXPECT_EQ(ValueOf(jobs, "lockstep_user_value", {}), std::nullopt);
}

TEST(JobMetricsTest, PhasesOfADeviceAreThoseItsTimesTell) {
  Names names;
  JobMetrics jobs;
  Followed followed;
  followed.counters = {{names("device_times"), 0, 0}};
  followed.spans = {{1, names("forward"), 0, 5 * kMillisecondNs}};
  followed.steps = {{1, 0, 0, 10 * kMillisecondNs}};
  jobs.Take(Identity(11, 0), followed, names.Lookup());
  EXPECT_EQ(ValueOf(jobs, "lockstep_steps_total", {}), 0.0);
  followed = {};
  const std::string phases = "lockstep_step_phase_seconds_total";
  followed.counters = {{names("device_step"), 0, 0},
                       {names("device_stage/forward"), 0, 70.0 * kMillisecondNs},
                       {names("device_step_end"), 0, 1}};
  jobs.Take(Identity(11, 0), followed, names.Lookup());
  EXPECT_EQ(ValueOf(jobs, phases, {{"phase", "comm_exposed"}}), std::nullopt);
  followed = {};
  followed.steps = {{1, 1, 10 * kMillisecondNs, 10 * kMillisecondNs}};
  followed.counters = {{names("device_step"), 0, 1},
                       {names("device_stage/comm"), 0, 30.0 * kMillisecondNs},
                       {names("device_step_end"), 0, 1}};
  jobs.Take(Identity(11, 0), followed, names.Lookup());
  EXPECT_EQ(ValueOf(jobs, "lockstep_steps_total", {}), 2.0);
  EXPECT_DOUBLE_EQ(ValueOf(jobs, "lockstep_step_seconds_total", {}).value_or(-1), 0.100);
  EXPECT_DOUBLE_EQ(ValueOf(jobs, phases, {{"phase", "forward"}}).value_or(-1), 0.070);
  EXPECT_DOUBLE_EQ(ValueOf(jobs, phases, {{"phase", "comm_exposed"}}).value_or(-1), 0.030);
  EXPECT_EQ(ValueOf(jobs, "lockstep_user_value", {}), std::nullopt);
}

TEST(JobMetricsTest, AWorkerWithItsRanksNumberMakesNoSecondSeries) {
  Names names;
  JobMetrics jobs;
  Followed steps;
  steps.steps = {{1, 1, 0, 100 * kMillisecondNs}};
  jobs.Take(Identity(101, 2), {}, names.Lookup());
  jobs.Take(Identity(100, 2), steps, names.Lookup());
  jobs.Take(Identity(102, 2), {}, names.Lookup());
  EXPECT_EQ(ValueOf(jobs, "lockstep_steps_total", {{"rank", "2"}}), 1.0);
  EXPECT_EQ(ValueOf(jobs, "lockstep_rank_info", {{"rank", "2"}, {"pid", "100"}}), 1.0);
  EXPECT_EQ(ValueOf(jobs, "lockstep_job_step_median_seconds", {}), 0.1);
}

TEST(JobMetricsTest, SeriesGoWithTheirRankAndTheirJob) {
  Names names;
  JobMetrics jobs;
  Followed followed;
  followed.steps = {{1, 1, 0, 100 * kMillisecondNs}};
  followed.requests = {{Kind::kBegin, 9, names("generate"), 0, 0, false}};
  jobs.Take(Identity(100, 0), followed, names.Lookup());
  jobs.Take(Identity(101, 1), followed, names.Lookup());
  EXPECT_EQ(ValueOf(jobs, "lockstep_serving_requests_running", {{"model", "generate"}}), 2.0);
  EXPECT_EQ(ValueOf(jobs, "lockstep_serving_requests_total", {{"model", "generate"}}), 0.0);
  EXPECT_EQ(ValueOf(jobs, "lockstep_step_duration_seconds", {{"job_id", "job7"}}), 2.0);
  jobs.Forget(100);
  EXPECT_EQ(ValueOf(jobs, "lockstep_steps_total", {{"rank", "0"}}), std::nullopt);
  EXPECT_EQ(ValueOf(jobs, "lockstep_steps_total", {{"rank", "1"}}), 1.0);
  jobs.Forget(101);
  EXPECT_TRUE(jobs.Collect().empty());
}

TEST(JobMetricsTest, TokensThatCameAtOnceCountEach) {
  Names names;
  JobMetrics jobs;
  Followed followed;
  const uint32_t generate = names("generate");
  followed.requests = {{Kind::kBegin, 9, generate, 0, 0, false},
                       {Kind::kOutput, 9, generate, 1 * kMillisecondNs, 1, false},
                       {Kind::kOutput, 9, generate, 3 * kMillisecondNs, uint64_t{1} << 40, false},
                       {Kind::kOutput, 9, generate, 23 * kMillisecondNs, 1, false},
                       {Kind::kEnd, 9, generate, 23 * kMillisecondNs, 0, false}};
  jobs.Take(Identity(100, 0), followed, names.Lookup());
  const auto families = jobs.Collect();
  const auto family = Find(families, "lockstep_serving_inter_token_latency_seconds");
  ASSERT_NE(family, families.end());
  const auto& histogram = family->metric.at(0).histogram;
  EXPECT_EQ(histogram.sample_count, (uint64_t{1} << 40) + 1);
  EXPECT_EQ(histogram.bucket.at(0).cumulative_count, uint64_t{1} << 40);  // Up to 10 ms.
  EXPECT_EQ(histogram.bucket.at(1).cumulative_count, (uint64_t{1} << 40) + 1);
  EXPECT_DOUBLE_EQ(histogram.sample_sum, 0.020);
}

TEST(JobMetricsTest, TimesBetweenOutputsOfTheLastMinuteCountEach) {
  Names names;
  JobMetrics jobs;
  Followed followed;
  const uint32_t generate = names("generate");
  const int64_t end_ns = UnixNow();
  const auto at = [&](int64_t before_ms) { return end_ns - before_ms * kMillisecondNs; };
  followed.requests = {{Kind::kBegin, 9, generate, at(50), 0, false},
                       {Kind::kOutput, 9, generate, at(49), 1, false},
                       {Kind::kOutput, 9, generate, at(40), 9, false},  // Nine within 9 ms.
                       {Kind::kOutput, 9, generate, at(0), 1, false},
                       {Kind::kEnd, 9, generate, end_ns, 0, false}};
  jobs.Take(Identity(100, 0), followed, names.Lookup());
  const auto families = jobs.Collect();
  const auto family = Find(families, "lockstep_serving_recent_inter_token_latency_seconds");
  ASSERT_NE(family, families.end());
  const auto& summary = family->metric.at(0).summary;
  EXPECT_EQ(summary.sample_count, 10u);
  EXPECT_NEAR(summary.sample_sum, 0.049, 1e-9);
  EXPECT_NEAR(summary.quantile.at(0).value, 0.001, 0.00001);
  EXPECT_NEAR(summary.quantile.back().value, 0.040, 0.0002);
}

TEST(JobMetricsTest, RequestsThatEndedLongAgoAreNotRecent) {
  Names names;
  JobMetrics jobs;
  Followed followed;
  const uint32_t generate = names("generate");
  const int64_t now_ns = UnixNow();
  const auto add = [&](uint64_t request, int64_t end_ns, int64_t duration_ns) {
    followed.requests.push_back({Kind::kBegin, request, generate, end_ns - duration_ns, 0, false});
    followed.requests.push_back({Kind::kEnd, request, 0, end_ns, 0, false});
  };
  add(1, now_ns, 100 * kMillisecondNs);
  add(2, now_ns - 120'000 * kMillisecondNs, 900 * kMillisecondNs);
  add(3, 0, 900 * kMillisecondNs);
  jobs.Take(Identity(100, 0), followed, [&](uint32_t name) -> const std::string& {
    static const std::string none;
    return name == 0 ? none : names.Lookup()(name);
  });
  const auto families = jobs.Collect();
  const auto family = Find(families, "lockstep_serving_recent_request_duration_seconds");
  ASSERT_NE(family, families.end());
  const auto& summary = family->metric.at(0).summary;
  EXPECT_EQ(summary.sample_count, 3u);
  EXPECT_NEAR(summary.quantile.back().value, 0.1, 0.001);
}

TEST(JobMetricsTest, EveryMetricIsInTheListAndHasItsLabels) {
  Names names;
  JobMetrics jobs;
  Followed followed;
  followed.steps = {{1, 1, 0, 100 * kMillisecondNs}};
  for (const char* name : {"tokens", "samples", "model_flops", "loss", "torch_memory_allocated_bytes",
                           "torch_memory_reserved_bytes", "torch_memory_peak_bytes", "torch_memory_total_bytes",
                           "torch_alloc_retries", "torch_ooms", "gpu_peak_flops_per_second"}) {
    followed.counters.push_back({names(name), 1, 1.0});
  }
  followed.requests = {{Kind::kBegin, 9, names("generate"), 0, 0, false}};
  followed.open = {{1, names(""), 100 * kMillisecondNs, 0}};
  RankIdentity identity = Identity(100, 0);
  identity.user = "ann";
  identity.device = "cuda";
  jobs.Take(identity, followed, names.Lookup());
  const auto families = jobs.Collect();
  // All of ranks' metrics, and of those of requests what a program's own marks tell.
  MetricSpecs specs = JobMetricSpecs();
  for (const MetricSpec& each : specs) {
    EXPECT_TRUE(std::any_of(families.begin(), families.end(), [&](const auto& family) {
      return family.name == each.name;
    })) << each.name;
  }
  specs.insert(specs.end(), ServingMetricSpecs().begin(), ServingMetricSpecs().end());
  for (const auto& family : families) {
    const auto spec =
        std::find_if(specs.begin(), specs.end(), [&](const MetricSpec& each) { return family.name == each.name; });
    ASSERT_NE(spec, specs.end()) << family.name;
    std::vector<std::string> labels;
    for (std::string rest = spec->labels; !rest.empty();) {
      labels.push_back(rest.substr(0, rest.find(',')));
      rest.erase(0, labels.back().size() + 1);
    }
    for (const auto& metric : family.metric) {
      std::vector<std::string> given;
      for (const auto& label : metric.label) given.push_back(label.name);
      EXPECT_THAT(given, testing::UnorderedElementsAreArray(labels)) << family.name;
    }
  }
}

}  // namespace
}  // namespace lockstep::agent
