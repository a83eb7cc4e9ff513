#include "analysis/profile_history/capture_figures.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/breakdown.h"
#include "base/nanoseconds.h"

namespace lockstep::profile_history {
namespace {

using comparison::Part;
using comparison::RankProfile;
using comparison::RunProfile;

RankProfile RankOf(int32_t rank, double step, double exposed) {
  RankProfile profile;
  profile.rank = rank;
  profile.parts[static_cast<size_t>(Part::kStep)] = {step, step, step};
  profile.parts[static_cast<size_t>(Part::kExposedCommunication)] = {exposed, exposed, exposed};
  return profile;
}

/// Three steps of 100 ms; rank 1 works 90 ms of them, rank 0 only 45.
RunProfile Job() {
  RunProfile job;
  job.basis = analysis::Basis::kDevice;
  job.has_steps = true;
  job.world_size = 2;
  job.rank_count = 2;
  job.steps = {{0, 1}, {0, 2}, {0, 3}};
  job.step_ns = {100 * kMillisecondNs, 99 * kMillisecondNs, 180 * kMillisecondNs};
  for (auto& part : job.mean_parts) part = {20 * kMillisecondNs, 20 * kMillisecondNs, 90 * kMillisecondNs};
  job.ranks = {RankOf(0, 100 * kMillisecondNs, 55 * kMillisecondNs),
               RankOf(1, 100 * kMillisecondNs, 10 * kMillisecondNs)};
  comparison::NameProfile gemm;
  gemm.kind = comparison::EventClass::kKernel;
  gemm.name = "gemm";
  gemm.step_ns = {40'000'000, 42'000'000, 80'000'000};
  comparison::NameProfile tiny;
  tiny.kind = comparison::EventClass::kKernel;
  tiny.name = "tiny";
  tiny.step_ns = {1000, 1000, 1000};
  comparison::NameProfile op;
  op.kind = comparison::EventClass::kOperator;
  op.name = "aten::mm";
  op.step_ns = {40'000'000, 40'000'000, 40'000'000};
  job.names = {gemm, tiny, op};
  comparison::CollectiveProfile reduce;
  reduce.name = "all_reduce";
  reduce.bytes = 4096;
  reduce.timed_count = 3;
  reduce.step_transfer_ns = {5 * kMillisecondNs, 5 * kMillisecondNs, 5 * kMillisecondNs};
  reduce.busbw_bytes_per_s = {1e9, 2e9, 9e9};
  job.collectives = {reduce};
  job.memory = {{.rank = 0, .device = 0, .peak_allocated_bytes = 900, .peak_reserved_bytes = 1000},
                {.rank = 1, .device = 0, .peak_allocated_bytes = 1200}};
  return job;
}

const Figure* Find(const CaptureRecord& record, const std::string& name) {
  for (const Figure& figure : record.figures) {
    if (figure.name == name) return &figure;
  }
  return nullptr;
}

TEST(CaptureFiguresTest, FiguresAreMediansOfTheSteps) {
  CaptureRecord record;
  FillFigures(Job(), 0, &record);
  EXPECT_EQ(record.step_count, 3);
  EXPECT_EQ(record.world_size, 2);
  ASSERT_NE(Find(record, "step"), nullptr);
  EXPECT_DOUBLE_EQ(Find(record, "step")->value, 100 * kMillisecondNs);
  EXPECT_DOUBLE_EQ(Find(record, "exposed_communication")->value, 20 * kMillisecondNs);
  EXPECT_DOUBLE_EQ(Find(record, "exposed_communication")->whole, 100 * kMillisecondNs);
  ASSERT_NE(Find(record, "kernel:gemm"), nullptr);
  EXPECT_DOUBLE_EQ(Find(record, "kernel:gemm")->value, 21 * kMillisecondNs) << "per rank";
  EXPECT_EQ(Find(record, "kernel:tiny"), nullptr);
  EXPECT_EQ(Find(record, "kernel:aten::mm"), nullptr);
  ASSERT_NE(Find(record, "busbw:all_reduce 4096"), nullptr);
  EXPECT_DOUBLE_EQ(Find(record, "busbw:all_reduce 4096")->value, 2e9);
  EXPECT_DOUBLE_EQ(Find(record, "memory_peak")->value, 1200);
  EXPECT_EQ(Find(record, "memory_peak")->rank, 1);
  EXPECT_DOUBLE_EQ(Find(record, "own_time_ratio")->value, 2);
  EXPECT_EQ(Find(record, "own_time_ratio")->rank, 1);
  EXPECT_EQ(record.own_ns, (std::vector<std::pair<int32_t, int64_t>>{{0, 45'000'000}, {1, 90'000'000}}));
}

TEST(CaptureFiguresTest, WithoutMarkedStepsTheOptimizerCountsThem) {
  RunProfile job = Job();
  job.has_steps = false;
  CaptureRecord counted;
  FillFigures(job, 10, &counted);
  EXPECT_EQ(counted.step_count, 10);
  EXPECT_DOUBLE_EQ(Find(counted, "step")->value, 10 * kMillisecondNs);
  EXPECT_DOUBLE_EQ(Find(counted, "idle")->value, 2 * kMillisecondNs);
  CaptureRecord uncounted;
  FillFigures(job, 0, &uncounted);
  EXPECT_EQ(Find(uncounted, "step"), nullptr);
  EXPECT_EQ(Find(uncounted, "idle")->unit, "ratio");
  EXPECT_DOUBLE_EQ(Find(uncounted, "idle")->value, 0.2);
}

TEST(CaptureFiguresTest, NothingMeasuredGivesNoFigures) {
  CaptureRecord record;
  FillFigures(RunProfile(), 5, &record);
  EXPECT_TRUE(record.figures.empty());
}

}  // namespace
}  // namespace lockstep::profile_history
