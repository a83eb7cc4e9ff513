#include "present/export/live/otlp_metrics.h"

#include <gmock/gmock.h>
#include <otlp_metrics.pb.h>

#include <limits>
#include <map>

namespace lockstep::export_live {
namespace {

live::JobView JobOf(size_t rank_count) {
  live::JobView job;
  job.job_id = "7\xff";  // No UTF-8: protobuf's text must be.
  for (size_t i = 0; i < rank_count; ++i) {
    live::RankView rank;
    rank.rank = std::to_string(i);
    rank.state = live::RankState::kRuns;
    rank.step_count = 3;
    rank.step_ns = 50'000'000;
    rank.reading.user_values["loss"] = std::numeric_limits<double>::infinity();
    job.ranks.push_back(rank);
  }
  return job;
}

TEST(OtlpMetricsTest, ManyRanksAreSeveralPayloads) {
  uint64_t points = 0;
  int resources = 0;
  const std::vector<OtlpPayload> payloads = MakeOtlpMetrics(JobOf(450), 2'000, 1'000, "1.2");
  EXPECT_EQ(payloads.size(), 3u);
  for (const OtlpPayload& payload : payloads) {
    otlp::ExportMetricsServiceRequest request;
    ASSERT_TRUE(request.ParseFromString(payload.bytes));
    resources += request.resource_metrics_size();
    for (const auto& resource : request.resource_metrics()) {
      EXPECT_EQ(resource.resource().attributes(1).value().string_value(), "7\xEF\xBF\xBD");
      for (const auto& metric : resource.scope_metrics(0).metrics()) {
        EXPECT_NE(metric.name(), "lockstep.user.value");
        points += static_cast<uint64_t>(metric.gauge().data_points_size() + metric.sum().data_points_size());
      }
    }
    points -= payload.point_count;
  }
  EXPECT_EQ(points, 0u);
  EXPECT_EQ(resources, 451);
}

TEST(OtlpMetricsTest, DevicesHaveOpenTelemetrysNames) {
  live::JobView job = JobOf(1);
  live::GpuView gpu;
  gpu.reading.gpu = "3";
  gpu.reading.uuid = "GPU-1";
  gpu.reading.utilization_ratio = 0.5;
  gpu.reading.memory_used_bytes = 7e9;
  gpu.reading.temperature_celsius = 60;
  gpu.power_watts = 300;
  job.ranks[0].gpu = gpu;
  otlp::ExportMetricsServiceRequest request;
  ASSERT_TRUE(request.ParseFromString(MakeOtlpMetrics(job, 2'000, 1'000, "1.2").at(0).bytes));
  std::map<std::string, double> values;
  for (const auto& metric : request.resource_metrics(1).scope_metrics(0).metrics()) {
    if (!metric.name().starts_with("hw.")) continue;
    const auto& point = metric.has_sum() ? metric.sum().data_points(0) : metric.gauge().data_points(0);
    EXPECT_EQ(metric.has_sum(), metric.name() == "hw.gpu.memory.usage");
    EXPECT_EQ(point.start_time_unix_nano(), metric.has_sum() ? 1'000u : 0u);
    EXPECT_EQ(point.time_unix_nano(), 2'000u);
    ASSERT_EQ(point.attributes_size(), 2);
    EXPECT_EQ(point.attributes(0).value().string_value(), "gpu");
    EXPECT_EQ(point.attributes(1).value().string_value(), "GPU-1");
    values[metric.name()] = point.as_double();
  }
  EXPECT_THAT(values,
              testing::ElementsAre(testing::Pair("hw.gpu.memory.usage", 7e9), testing::Pair("hw.gpu.utilization", 0.5),
                                   testing::Pair("hw.power", 300), testing::Pair("hw.temperature", 60)));
}

TEST(OtlpMetricsTest, NobodyThatIsNotHeardIsInIt) {
  live::JobView job = JobOf(1);
  job.ranks[0].state = live::RankState::kUnheard;
  otlp::ExportMetricsServiceRequest request;
  const std::vector<OtlpPayload> payloads = MakeOtlpMetrics(job, 2'000, 1'000, "1.2");
  ASSERT_EQ(payloads.size(), 1u);
  ASSERT_TRUE(request.ParseFromString(payloads[0].bytes));
  EXPECT_EQ(request.resource_metrics_size(), 1);  // The job's.
}

TEST(OtlpReplyTest, WhatIsNoReplySaysNothing) {
  for (const std::string bytes : {"", "\xff\xff\xff\xff", "<html>", "\x0a\x7f"}) {
    EXPECT_EQ(ReadOtlpReply(bytes).rejected_count, 0u);
  }
  otlp::ExportMetricsServiceResponse response;
  response.mutable_partial_success()->set_rejected_data_points(-5);
  EXPECT_EQ(ReadOtlpReply(response.SerializeAsString()).rejected_count, 0u);
  response.mutable_partial_success()->set_rejected_data_points(5);
  response.mutable_partial_success()->set_error_message("too\x1b old");
  EXPECT_EQ(ReadOtlpReply(response.SerializeAsString()).rejected_count, 5u);
  EXPECT_EQ(ReadOtlpReply(response.SerializeAsString()).message, "too? old");
}

}  // namespace
}  // namespace lockstep::export_live
