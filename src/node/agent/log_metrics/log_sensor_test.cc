#include "node/agent/log_metrics/log_sensor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "base/temporary_folder.h"

namespace lockstep::agent {
namespace {

using evidence::LogEventKind;
using testing::ElementsAre;
using testing::Pair;

std::map<int32_t, LogCounts> Count(std::string_view bytes, bool skips_own = false) {
  std::map<int32_t, LogCounts> counts;
  LogMeter meter;
  meter.Take(bytes, skips_own, [&](std::optional<int32_t> rank) { return &counts[rank.value_or(-1)]; });
  return counts;
}

constexpr const char* kHead = "2026-11-23T02:12:17.017281547Z 26510.797868009 ";

TEST(LogMeterTest, LinesCountByLevelAndATracebackIsOneError) {
  const auto counts = Count(
      "step 1\nWARNING: low\nERROR: bad\nTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n"
      "    f()\nValueError: x\nERROR: worse\nnot ended");
  ASSERT_EQ(counts.size(), 1u);
  const LogCounts& all = counts.at(-1);
  EXPECT_THAT(all.lines, ElementsAre(0, 0, 1, 1, 6, 0));
  EXPECT_EQ(all.errors, 3u);
}

TEST(LogMeterTest, HeadsAndPrefixesSayWhoseALineIs) {
  const std::string head = kHead;
  const auto counts =
      Count(head + "E rank3 node0 err: it broke\n" + head + "I rank4 node0 out: fine\n[rank5]: ERROR no\n");
  EXPECT_EQ(counts.at(3).errors, 1u);
  EXPECT_EQ(counts.at(4).lines[2], 1u);
  EXPECT_EQ(counts.at(5).errors, 1u);
  EXPECT_THAT(Count(head + "E rank3 node0 err: it broke\nERROR mine\n", true).at(-1).errors, 1u);
  EXPECT_FALSE(Count(head + "E rank3 node0 err: it broke\n", true).contains(3));
}

TEST(LogMeterTest, LinesThatTellOfAFailureCountByKind) {
  const auto counts = Count(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB\n"
      "n1:1:2 [0] transport/net.cc:1 NCCL WARN Call to connect failed\n"
      "[rank0]:[E1121 03:35:23.1 ProcessGroupNCCL.cpp:1] [PG ID 0 PG GUID 0(default_pg) Rank 0] Watchdog caught "
      "collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1) ran for 600 ms\n"
      "loss 0.3\n");
  EXPECT_THAT(counts.at(-1).events,
              ElementsAre(Pair(LogEventKind::kOutOfMemory, 1), Pair(LogEventKind::kNcclError, 1)));
  EXPECT_THAT(counts.at(0).events, ElementsAre(Pair(LogEventKind::kWatchdogTimeout, 1)));
}

class LogSensorTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(folder_.made()); }

  UniqueFd Open(const std::string& name) {
    return UniqueFd(::open(Path(name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  }
  std::string Path(const std::string& name) const { return (std::filesystem::path(folder_.path()) / name).string(); }
  static void Say(const UniqueFd& fd, std::string_view text) {
    ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// This process is rank 3 of job 7.
  std::vector<proc::JobProcess> Ranks() const {
    proc::JobProcess process;
    process.pid = ::getpid();
    process.uid = ::geteuid();
    process.details.job_id = "7";
    process.details.rank = 3;
    return {process};
  }
  /// Sum of a metric over all series with this rank.
  static std::optional<double> Sum(const Result<Reading>& reading, const std::string& name, const std::string& rank) {
    std::optional<double> sum;
    for (const auto& family : reading->families) {
      for (const auto& metric : family.metric) {
        if (family.name == name && metric.label.at(1).value == rank) sum = sum.value_or(0) + metric.counter.value;
      }
    }
    return sum;
  }

  const TemporaryFolder folder_{"log_sensor"};
};

constexpr const char* kLog = "rank3.node0.job7.20261123T021503Z.pid812.log";

TEST_F(LogSensorTest, ARanksOwnLogIsFollowedThroughTruncationAndGoesWithTheRank) {
  bool is_there = true;
  LogSensor sensor("n1", [&] { return is_there ? Ranks() : std::vector<proc::JobProcess>(); }, {});
  UniqueFd log = Open(kLog);
  const UniqueFd other = Open("notes.txt");  // No log of ours, and no stream.
  Say(log, "ERROR: from before the daemon\n");
  Say(other, "ERROR: no\n");
  Result<Reading> reading = sensor.Look();
  EXPECT_EQ(Sum(reading, "lockstep_log_errors_total", "3"), 0);  // There with 0, for increase().
  EXPECT_EQ(Sum(reading, "lockstep_watchdog_timeouts_total", "3"), 0);
  Say(log, "ERROR: one\nstep\nERR");
  Say(log, "OR: two\n");
  reading = sensor.Look();
  EXPECT_EQ(Sum(reading, "lockstep_log_errors_total", "3"), 2);
  EXPECT_EQ(Sum(reading, "lockstep_log_lines_total", "3"), 3);
  ASSERT_EQ(::ftruncate(log.get(), 0), 0);
  Say(log, "ERROR: 3\n");
  EXPECT_EQ(Sum(sensor.Look(), "lockstep_log_errors_total", "3"), 3);
  Say(log, std::string(kMostBehindBytes + 2 * kMostLogBytes, '\n'));
  reading = sensor.Look();
  EXPECT_EQ(Sum(reading, "lockstep_log_skipped_bytes_total", "3"), kMostBehindBytes + kMostLogBytes);
  EXPECT_EQ(Sum(reading, "lockstep_log_lines_total", "3"), 4 + kMostLogBytes);
}

TEST_F(LogSensorTest, WhatARankWroteWhenItDiedIsToldForAWhileAndThenGoes) {
  bool is_there = true;
  LogSensor::TimePoint now{};
  LogSensor sensor(
      "n1", [&] { return is_there ? Ranks() : std::vector<proc::JobProcess>(); }, {}, "/proc", [&] { return now; });
  UniqueFd log = Open(kLog);
  EXPECT_EQ(Sum(sensor.Look(), "lockstep_log_errors_total", "3"), 0);
  Say(log, "ERROR: the last words\n");
  log = UniqueFd();
  is_there = false;
  now += std::chrono::seconds(6);
  EXPECT_EQ(Sum(sensor.Look(), "lockstep_log_errors_total", "3"), 1);
  now += std::chrono::seconds(30);
  EXPECT_EQ(Sum(sensor.Look(), "lockstep_log_errors_total", "3"), 1);
  now += std::chrono::seconds(6);
  const Result<Reading> reading = sensor.Look();
  EXPECT_EQ(Sum(reading, "lockstep_log_errors_total", "3"), std::nullopt);
  EXPECT_FALSE(reading->is_present);
}

TEST_F(LogSensorTest, PatternsAreFollowedByWhoeverTheirLinesSay) {
  const UniqueFd log = Open("a.log");
  std::filesystem::create_symlink(Path("a.log"), Path("b.log"));
  ASSERT_EQ(::mkfifo(Path("c.log").c_str(), 0600), 0);
  LogSensor sensor("n1", [] { return std::vector<proc::JobProcess>(); }, {Path("*.log")});
  EXPECT_EQ(Sum(sensor.Look(), "lockstep_log_errors_total", "unknown"), 0);
  Say(log, "[rank1]: ERROR a\nERROR b\nERROR c\n");
  const Result<Reading> reading = sensor.Look();
  EXPECT_EQ(Sum(reading, "lockstep_log_errors_total", "unknown"), 2);
  EXPECT_EQ(Sum(reading, "lockstep_log_errors_total", "1"), 1);
}

}  // namespace
}  // namespace lockstep::agent
