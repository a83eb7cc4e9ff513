#include "node/live/node_reading.h"

#include <gmock/gmock.h>

namespace lockstep::live {
namespace {

TEST(NodeReadingTest, WhatHasNoSeriesIsAbsentAndNotZero) {
  const NodeReading reading = ReadNodeMetrics("lockstep_rank_up{job_id=\"j\",rank=\"0\",host=\"n\"} 1\n", "");
  ASSERT_EQ(reading.ranks.size(), 1U);
  const RankReading& rank = reading.ranks[0];
  EXPECT_EQ(rank.up, 1);
  EXPECT_EQ(rank.host, "n");
  EXPECT_EQ(rank.steps, std::nullopt);
  EXPECT_EQ(rank.phase_s[0], std::nullopt);
  EXPECT_EQ(rank.torch_reserved_bytes, std::nullopt);
}

TEST(NodeReadingTest, AZeroThatWasMeasuredIsZero) {
  const NodeReading reading = ReadNodeMetrics(
      "lockstep_steps_total{job_id=\"j\",rank=\"0\",host=\"n\"} 0\n"
      "lockstep_step_phase_seconds_total{job_id=\"j\",rank=\"0\",host=\"n\",phase=\"input\"} 0\n",
      "");
  EXPECT_EQ(reading.ranks[0].steps, 0);
  EXPECT_EQ(reading.ranks[0].phase_s[static_cast<size_t>(model::Stage::kInput)], 0);
  EXPECT_EQ(reading.ranks[0].phase_s[static_cast<size_t>(model::Stage::kOther)], std::nullopt);
}

TEST(NodeReadingTest, OneJobCanBeChosen) {
  const char* text =
      "lockstep_steps_total{job_id=\"a\",rank=\"0\",host=\"n\"} 1\n"
      "lockstep_steps_total{job_id=\"b\",rank=\"0\",host=\"n\"} 2\n"
      "lockstep_job_world_size{job_id=\"b\"} 8\n"
      "lockstep_serving_requests_total{job_id=\"a\",model=\"m\",engine=\"e\"} 5\n";
  EXPECT_EQ(ReadNodeMetrics(text, "").ranks.size(), 2U);
  const NodeReading reading = ReadNodeMetrics(text, "b");
  ASSERT_EQ(reading.ranks.size(), 1U);
  EXPECT_EQ(reading.ranks[0].steps, 2);
  EXPECT_TRUE(reading.serving.empty());
  EXPECT_EQ(reading.jobs.at("b").world_size, 8);
}

TEST(NodeReadingTest, SeriesByReasonAndGroupAddUp) {
  const NodeReading reading = ReadNodeMetrics(
      "lockstep_events_dropped_total{source=\"s\",reason=\"a\",job_id=\"j\",rank=\"0\",host=\"n\"} 2\n"
      "lockstep_events_dropped_total{source=\"s\",reason=\"b\",job_id=\"j\",rank=\"0\",host=\"n\"} 3\n"
      "lockstep_collective_seconds_total{job_id=\"j\",rank=\"0\",pg=\"p\",op=\"all_reduce\"} 1.5\n"
      "lockstep_collective_seconds_total{job_id=\"j\",rank=\"0\",pg=\"q\",op=\"broadcast\"} 2\n"
      "lockstep_collective_enqueued_total{job_id=\"j\",rank=\"0\",pg=\"p\"} 7\n",
      "");
  ASSERT_EQ(reading.ranks.size(), 1U);
  EXPECT_EQ(reading.ranks[0].dropped_events, 5);
  EXPECT_EQ(reading.ranks[0].collective_s, 3.5);
  EXPECT_EQ(reading.ranks[0].groups.at("p").enqueued, 7);
  EXPECT_EQ(reading.ranks[0].groups.at("p").completed, std::nullopt);
}

TEST(NodeReadingTest, ALogMakesNoRank) {
  const NodeReading reading = ReadNodeMetrics(
      "lockstep_rank_up{job_id=\"j\",rank=\"0\",host=\"n\"} 1\n"
      "lockstep_log_lines_total{job_id=\"j\",rank=\"unknown\",host=\"n\",level=\"info\"} 3\n"
      "lockstep_watchdog_timeouts_total{job_id=\"j\",rank=\"unknown\",host=\"n\"} 0\n",
      "");
  ASSERT_EQ(reading.ranks.size(), 1U);
  EXPECT_EQ(reading.ranks[0].rank, "0");
}

TEST(NodeReadingTest, ErrorsOfALogAreItsRanks) {
  const NodeReading reading = ReadNodeMetrics(
      "lockstep_log_errors_total{job_id=\"j\",rank=\"0\",host=\"n\"} 3\n"
      "lockstep_log_errors_total{job_id=\"j\",rank=\"unknown\",host=\"n\"} 5\n"
      "lockstep_rank_up{job_id=\"j\",rank=\"0\",host=\"n\"} 1\n"
      "lockstep_rank_up{job_id=\"j\",rank=\"1\",host=\"n\"} 1\n",
      "");
  ASSERT_EQ(reading.ranks.size(), 2U);
  EXPECT_EQ(reading.ranks[0].log_errors, 3);
  EXPECT_EQ(reading.ranks[1].log_errors, std::nullopt);
}

TEST(NodeReadingTest, PortsAndInterfaces) {
  const NodeReading reading = ReadNodeMetrics(
      "lockstep_ib_port_active{host=\"n\",device=\"mlx5_0\",port=\"1\"} 1\n"
      "lockstep_ib_port_receive_bytes_total{host=\"n\",device=\"mlx5_0\",port=\"1\"} 4000\n"
      "lockstep_ib_port_errors_total{host=\"n\",device=\"mlx5_0\",port=\"1\",error=\"symbol\"} 3\n"
      "lockstep_ib_port_errors_total{host=\"n\",device=\"mlx5_0\",port=\"1\",error=\"link_downed\"} 2\n"
      "lockstep_host_network_transmit_bytes_total{host=\"n\",device=\"eth0\"} 7\n"
      "lockstep_ib_skipped_files{host=\"n\"} 5\n",
      "");
  ASSERT_EQ(reading.ports.size(), 2U);
  const PortReading& port = reading.ports.at({"mlx5_0", "1"});
  EXPECT_EQ(port.active, 1);
  EXPECT_EQ(port.received_bytes, 4000);
  EXPECT_EQ(port.errors, 5);
  EXPECT_EQ(port.transmit_wait, std::nullopt);
  EXPECT_EQ(reading.ports.at({"eth0", ""}).transmitted_bytes, 7);
}

TEST(NodeReadingTest, GpusAndTheirHottestSensor) {
  const NodeReading reading = ReadNodeMetrics(
      "lockstep_gpu_info{host=\"n\",gpu=\"0\",uuid=\"GPU-1\",model=\"H\"} 1\n"
      "lockstep_gpu_utilization_ratio{host=\"n\",gpu=\"0\"} 0.5\n"
      "lockstep_gpu_utilization_ratio{host=\"n\",gpu=\"0\",gi=\"1\"} 0.5\n"
      "lockstep_gpu_temperature_celsius{host=\"n\",gpu=\"0\",sensor=\"core\"} 60\n"
      "lockstep_gpu_temperature_celsius{host=\"n\",gpu=\"0\",sensor=\"memory\"} 82\n"
      "lockstep_gpu_ecc_errors_total{host=\"n\",gpu=\"0\",error=\"corrected\"} 9\n",
      "");
  const GpuReading& gpu = reading.gpus.at("0");
  EXPECT_EQ(gpu.uuid, "GPU-1");
  EXPECT_EQ(gpu.utilization_ratio, 0.5);
  EXPECT_EQ(gpu.temperature_celsius, 82);
  EXPECT_EQ(gpu.uncorrected_ecc_errors, std::nullopt);
}

TEST(NodeReadingTest, QuantilesOfTheLastMinuteWithoutThoseThatAreNoNumber) {
  const NodeReading reading = ReadNodeMetrics(
      "lockstep_serving_recent_request_duration_seconds{job_id=\"j\",model=\"m\",engine=\"e\",quantile=\"0.5\"} 0.25\n"
      "lockstep_serving_recent_request_duration_seconds{job_id=\"j\",model=\"m\",engine=\"e\",quantile=\"0.99\"} NaN\n"
      "lockstep_serving_recent_request_duration_seconds_sum{job_id=\"j\",model=\"m\",engine=\"e\"} 3\n",
      "");
  ASSERT_EQ(reading.serving.size(), 1U);
  EXPECT_THAT(reading.serving[0].recent_duration_s, testing::ElementsAre(testing::Pair(0.5, 0.25)));
}

TEST(NodeReadingTest, AnEngineHasAQueueACacheAndTimesBetweenOutputs) {
  const NodeReading reading = ReadNodeMetrics(
      "lockstep_serving_requests_waiting{job_id=\"j\",model=\"m\",engine=\"vllm\"} 4\n"
      "lockstep_serving_kv_cache_usage_ratio{job_id=\"j\",model=\"m\",engine=\"vllm\"} 0.75\n"
      "lockstep_serving_preemptions_total{job_id=\"j\",model=\"m\",engine=\"vllm\"} 0\n"
      "lockstep_serving_recent_inter_token_latency_seconds{job_id=\"j\",model=\"m\",engine=\"vllm\",quantile=\"0.95\"} "
      "0.02\n"
      "lockstep_serving_inter_token_latency_seconds_count{job_id=\"j\",model=\"m\",engine=\"vllm\"} 9\n"
      "lockstep_serving_requests_total{job_id=\"j\",model=\"m\",engine=\"sglang\"} 1\n",
      "");
  ASSERT_EQ(reading.serving.size(), 2U);
  const ServingReading& vllm = reading.serving[0];
  EXPECT_EQ(vllm.waiting, 4);
  EXPECT_EQ(vllm.kv_cache_usage_ratio, 0.75);
  EXPECT_EQ(vllm.preemptions, 0);
  EXPECT_THAT(vllm.recent_inter_token_s, testing::ElementsAre(testing::Pair(0.95, 0.02)));
  EXPECT_TRUE(vllm.recent_duration_s.empty());
  const ServingReading& sglang = reading.serving[1];
  EXPECT_EQ(sglang.waiting, std::nullopt);
  EXPECT_EQ(sglang.kv_cache_usage_ratio, std::nullopt);
  EXPECT_EQ(sglang.preemptions, std::nullopt);
  EXPECT_TRUE(sglang.recent_inter_token_s.empty());
}

TEST(NodeReadingTest, InstancesOfAGpuAreBelowItAndCountForNothingInIt) {
  std::string text =
      "lockstep_gpu_memory_used_bytes{host=\"n\",gpu=\"2\",gi=\"10\"} 5\n"
      "lockstep_gpu_memory_used_bytes{host=\"n\",gpu=\"2\"} 7\n"
      "lockstep_gpu_info{host=\"n\",gpu=\"2\",gi=\"9\",uuid=\"MIG-1\",model=\"H MIG 1g.10gb\",mig_profile=\"1g.10gb\"} "
      "1\n"
      "lockstep_gpu_info{host=\"n\",gpu=\"2\",uuid=\"GPU-1\",model=\"H\"} 1\n"
      "lockstep_gpu_sm_active_ratio{host=\"n\",gpu=\"2\",gi=\"9\"} 0.5\n"
      "lockstep_gpu_memory_total_bytes{host=\"n\",gpu=\"2\",gi=\"9\"} 11\n";
  const NodeReading reading = ReadNodeMetrics(text, "");
  const GpuReading& gpu = reading.gpus.at("2");
  EXPECT_TRUE(gpu.is_there);
  EXPECT_EQ(gpu.uuid, "GPU-1");
  EXPECT_EQ(gpu.model, "H");
  EXPECT_EQ(gpu.memory_used_bytes, 7);
  EXPECT_EQ(gpu.memory_total_bytes, std::nullopt);
  EXPECT_EQ(gpu.sm_active_ratio, std::nullopt);
  ASSERT_THAT(gpu.mig_instances, testing::ElementsAre(testing::Key("9"), testing::Key("10")));
  const MigInstanceReading& first = gpu.mig_instances.at("9");
  EXPECT_EQ(first.uuid, "MIG-1");
  EXPECT_EQ(first.profile, "1g.10gb");
  EXPECT_EQ(first.sm_active_ratio, 0.5);
  EXPECT_EQ(first.memory_used_bytes, std::nullopt);
  EXPECT_EQ(first.memory_total_bytes, 11);
  EXPECT_EQ(gpu.mig_instances.at("10").memory_used_bytes, 5);
  EXPECT_FALSE(reading.is_cut);
  for (int gi = 100; gi < 200; ++gi) {
    text += "lockstep_gpu_memory_used_bytes{host=\"n\",gpu=\"2\",gi=\"" + std::to_string(gi) + "\"} 1\n";
  }
  const NodeReading many = ReadNodeMetrics(text, "");
  EXPECT_EQ(many.gpus.at("2").mig_instances.size(), 16U);
  EXPECT_TRUE(many.is_cut);
}

TEST(NodeReadingTest, NamesWithoutEndAreBounded) {
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    text += "lockstep_user_value{job_id=\"j\",rank=\"0\",host=\"n\",name=\"v" + std::to_string(i) + "\"} 1\n";
  }
  for (int i = 0; i < 20000; ++i) text += "lockstep_rank_up{job_id=\"j\",rank=\"" + std::to_string(i) + "\"} 1\n";
  const NodeReading reading = ReadNodeMetrics(text, "");
  EXPECT_EQ(reading.ranks.size(), 16384U);
  EXPECT_EQ(reading.ranks[0].user_values.size(), 256U);
  EXPECT_TRUE(reading.is_cut);
}

}  // namespace
}  // namespace lockstep::live
