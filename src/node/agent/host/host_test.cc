#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <thread>

#include "base/unique_fd.h"
#include "node/agent/host/host_sensor.h"
#include "node/agent/host/host_text.h"
#include "node/agent/host/infiniband_sensor.h"
#include "node/agent/host/pressure_sensor.h"
#include "node/agent/host/process_sensor.h"
#include "node/agent/host/rank_list.h"
#include "node/agent/host/store_sensor.h"
#include "node/agent/sensors/small_file.h"
#include "node/agent/sensors/testing/fake_sysfs.h"
#include "node/proc/proc_reader.h"

namespace lockstep::agent {
namespace {

using namespace std::chrono_literals;

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::StrEq;
using testing::UnorderedElementsAre;

/// "name{value,value}" (labels without the host): its value.
std::map<std::string, double> Values(const Reading& reading) {
  std::map<std::string, double> values;
  for (const auto& family : reading.families) {
    for (const auto& metric : family.metric) {
      std::string key = family.name + "{";
      for (const auto& label : metric.label) {
        if (label.name != "host") key += (key.back() == '{' ? "" : ",") + label.value;
      }
      const bool is_new = values
                              .emplace(key + "}", family.type == prometheus::MetricType::Counter ? metric.counter.value
                                                                                                 : metric.gauge.value)
                              .second;
      EXPECT_TRUE(is_new) << key;
    }
  }
  return values;
}

class HostTest : public FakeSysfs {
 protected:
  /// A file that opens and cannot be read, as some cards have.
  void WriteUnreadable(const std::string& path) {
    std::filesystem::create_directories((root_ / path).parent_path());
    // At address 0 of a process there is nothing to read: EIO.
    std::filesystem::create_symlink("/proc/self/mem", root_ / path);
  }
  std::map<std::string, double> LookAtPorts() {
    const Result<Reading> reading = InfinibandSensor("n1", root_.string()).Look();
    EXPECT_TRUE(reading->is_present);
    return Values(*reading);
  }
};

TEST_F(HostTest, APortIsReadWithItsUnits) {
  const std::string port = "class/infiniband/mlx5_0/ports/1/";
  Write(port + "state", "4: ACTIVE");
  Write(port + "rate", "400 Gb/sec (4X NDR)");
  Write(port + "counters/port_rcv_data", "1000");
  Write(port + "counters/port_xmit_data", "18446744073709551615");
  Write(port + "counters/port_xmit_wait", "77");
  Write(port + "counters/symbol_error", "3");
  Write(port + "counters/port_rcv_errors", "4");
  Write(port + "counters/port_xmit_packets", "5");  // Has no metric.
  Write(port + "hw_counters/out_of_sequence", "6");
  EXPECT_THAT(LookAtPorts(), UnorderedElementsAre(Pair("lockstep_ib_port_active{mlx5_0,1}", 1),
                                                  Pair("lockstep_ib_port_rate_bytes_per_second{mlx5_0,1}", 50e9),
                                                  Pair("lockstep_ib_port_receive_bytes_total{mlx5_0,1}", 4000),
                                                  Pair("lockstep_ib_port_transmit_bytes_total{mlx5_0,1}",
                                                       4.0 * static_cast<double>(std::numeric_limits<uint64_t>::max())),
                                                  Pair("lockstep_ib_port_transmit_wait_total{mlx5_0,1}", 77),
                                                  Pair("lockstep_ib_port_errors_total{mlx5_0,1,symbol}", 3),
                                                  Pair("lockstep_ib_port_errors_total{mlx5_0,1,receive}", 4),
                                                  Pair("lockstep_ib_port_errors_total{mlx5_0,1,out_of_sequence}", 6),
                                                  Pair("lockstep_ib_skipped_files{}", 0)));
}

TEST_F(HostTest, OddPortsKeepNoOtherFromBeingRead) {
  Write("class/infiniband/irdma0/ports/1/state", "1: DOWN");  // No counters at all.
  Write("class/infiniband/irdma0/ports/1/rate", "no idea");
  Write("class/infiniband/mlx4_0/ports/1/state", "4: ACTIVE");
  Write("class/infiniband/mlx4_0/ports/1/counters/port_rcv_data", "N/A (no PMA)");
  Write("class/infiniband/mlx4_0/ports/1/counters/port_xmit_data", "-5");
  Write("class/infiniband/mlx4_0/ports/1/counters/symbol_error", "");
  Write("class/infiniband/mlx4_0/ports/1/counters/link_downed", "1");
  WriteUnreadable("class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait");
  WriteUnreadable("class/infiniband/mlx5_0/ports/1/state");
  Write("class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "2");
  Write("class/infiniband/mlx5_1/ports", "a file");
  std::filesystem::create_directories(root_ / "class/infiniband/mlx5_2");
  EXPECT_THAT(LookAtPorts(), UnorderedElementsAre(Pair("lockstep_ib_port_active{irdma0,1}", 0),
                                                  Pair("lockstep_ib_port_active{mlx4_0,1}", 1),
                                                  Pair("lockstep_ib_port_errors_total{mlx4_0,1,link_downed}", 1),
                                                  Pair("lockstep_ib_port_receive_bytes_total{mlx5_0,1}", 8),
                                                  Pair("lockstep_ib_skipped_files{}", 5)));
}

TEST_F(HostTest, AFileThatSaysThatItIsNotValidIsSkipped) {
  // Where no security module owns the first; where this user may open the second, which is there to be written.
  const char* file = nullptr;
  for (const char* const may_be : {"/proc/self/attr/exec", "/proc/self/clear_refs"}) {
    char byte = 0;
    const UniqueFd fd(::open(may_be, O_RDONLY | O_CLOEXEC));
    if (fd.valid() && ::read(fd.get(), &byte, 1) < 0 && errno == EINVAL) file = may_be;
  }
  if (file == nullptr) {
    GTEST_SKIP()
        << "lacks a file that answers EINVAL: a security module has /proc/self/attr/exec, and root alone opens "
           "/proc/self/clear_refs";
  }
  std::filesystem::create_directories(root_ / "class/infiniband/mlx5_0/ports/1/counters");
  std::filesystem::create_symlink(file, root_ / "class/infiniband/mlx5_0/ports/1/counters/link_downed");
  Write("class/infiniband/mlx5_0/ports/1/counters/symbol_error", "3");
  EXPECT_THAT(LookAtPorts(), UnorderedElementsAre(Pair("lockstep_ib_port_errors_total{mlx5_0,1,symbol}", 3),
                                                  Pair("lockstep_ib_skipped_files{}", 1)));
}

TEST_F(HostTest, WithoutPortsThereIsNothing) {
  for (int i = 0; i < 2; ++i) {
    const Result<Reading> reading = InfinibandSensor("n1", root_.string()).Look();
    EXPECT_FALSE(reading->is_present);
    EXPECT_TRUE(reading->families.empty());
    std::filesystem::create_directories(root_ / "class/infiniband");
  }
}

TEST(HostTextTest, RatesOfPorts) {
  EXPECT_EQ(ParsePortRate("2.5 Gb/sec (1X SDR)"), 312.5e6);
  for (const char* const text : {"", "400", "400 Gb", "x Gb/sec", "-1 Gb/sec", "nan Gb/sec", "1e999 Gb/sec"}) {
    EXPECT_EQ(ParsePortRate(text), std::nullopt) << text;
  }
}

TEST(HostTextTest, ResidentPagesAreTheSecondNumber) {
  EXPECT_EQ(ParseResidentPages("900 250 3 4 0 6 0"), 250u);
  EXPECT_EQ(ParseResidentPages("900"), std::nullopt);
}

TEST(HostTextTest, LinesOfTheKernel) {
  EXPECT_EQ(ValueOfLine("rchar: 1\nread_bytes: 4096\n", "read_bytes"), 4096u);
  EXPECT_EQ(ValueOfLine("MemTotal:       24 kB\nMemAvailable: 7 kB", "MemAvailable"), 7u);
  EXPECT_EQ(ValueOfLine("MemTotal:", "MemTotal"), std::nullopt);
  EXPECT_EQ(ValueOfLine("MemTotalX: 5", "MemTotal"), std::nullopt);
  EXPECT_THAT(
      ParseCpuTicks("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1"),
      ElementsAre(Pair(testing::StrEq("user"), 1), Pair(testing::StrEq("nice"), 2), Pair(testing::StrEq("system"), 3),
                  Pair(testing::StrEq("idle"), 4), Pair(testing::StrEq("iowait"), 5), Pair(testing::StrEq("irq"), 6),
                  Pair(testing::StrEq("softirq"), 7), Pair(testing::StrEq("steal"), 8)));
  EXPECT_TRUE(ParseCpuTicks("intr 5").empty());
  const auto interfaces = ParseInterfaces(
      "Inter-|   Receive  |  Transmit\n face |bytes packets\n    lo: 1 2 3 4 5 6 7 8 9 10\n"
      "  eth0: 100 2 3 4 5 6 7 8 200 10\n  eth0: 1 2 3 4 5 6 7 8 9\n eth1: 1 2\n");
  ASSERT_EQ(interfaces.size(), 1u);
  EXPECT_EQ(interfaces[0].name, "eth0");
  EXPECT_EQ(interfaces[0].received, 100u);
  EXPECT_EQ(interfaces[0].transmitted, 200u);
}

TEST(HostTextTest, PressureIsTheTotalOfEachKind) {
  EXPECT_THAT(ParsePressure("some avg10=1.50 avg60=0.00 avg300=0.00 total=12345678\n"
                            "full avg10=0.00 avg60=0.00 avg300=0.00 total=7"),
              ElementsAre(Pair(StrEq("some"), 12345678), Pair(StrEq("full"), 7)));
  EXPECT_THAT(ParsePressure("some avg10=0.00 total=1\nsome avg10=0.00 total=2\nfull avg10=0.00 total=x\nodd total=3"),
              ElementsAre(Pair(StrEq("some"), 1)));
  EXPECT_THAT(ParsePressure(""), IsEmpty());
}

TEST_F(HostTest, PressureIsAbsentWhereTheKernelCountsNone) {
  EXPECT_FALSE(PressureSensor("n1", root_.string()).Look()->is_present);
  Write("pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000");
  WriteUnreadable("pressure/io");  // As a kernel that was started with psi=0 has it.
  const Result<Reading> reading = PressureSensor("n1", root_.string()).Look();
  EXPECT_TRUE(reading->is_present);
  EXPECT_THAT(Values(*reading), ElementsAre(Pair("lockstep_host_pressure_seconds_total{cpu,some}", 1.5)));
}

TEST_F(HostTest, RoomForTracesIsThatOfWhatIsThereAboveTheFolder) {
  const auto space = std::filesystem::space(root_);
  for (const std::string& folder : {root_.string(), (root_ / "not/there/yet").string()}) {
    const auto values = Values(*StoreSensor("n1", folder).Look());
    EXPECT_EQ(values.at("lockstep_store_disk_bytes{}"), static_cast<double>(space.capacity)) << folder;
    EXPECT_LE(values.at("lockstep_store_free_bytes{}"), values.at("lockstep_store_disk_bytes{}"));
  }
  Write("file", "");
  EXPECT_FALSE(StoreSensor("n1", (root_ / "file/below").string()).Look());
}

TEST(HostSensorTest, SaysWhatThisNodeHas) {
  const Result<Reading> reading = HostSensor("n1").Look();
  const auto values = Values(*reading);
  SmallFiles files;
  EXPECT_EQ(values.at("lockstep_host_memory_total_bytes{}"),
            1024.0 * static_cast<double>(*ValueOfLine(*files.Text("/proc/meminfo"), "MemTotal")));
  EXPECT_LE(values.at("lockstep_host_memory_available_bytes{}"), values.at("lockstep_host_memory_total_bytes{}"));
  EXPECT_GT(values.at("lockstep_host_cpu_seconds_total{idle}"), 0);
}

proc::JobProcess Self(int32_t rank) {
  const auto details = proc::ProcReader("/proc").ReadBriefly(::getpid(), 0);
  proc::JobProcess process;
  process.pid = ::getpid();
  process.details = *details;
  process.details.job_id = "4711";
  process.details.rank = rank;
  return process;
}

TEST(ProcessSensorTest, WhatThisProcessUses) {
  proc::JobProcess worker = Self(3);
  worker.pid = ::getppid();
  ++worker.details.start_ticks;  // Later: not the rank.
  ProcessSensor sensor("n1", [&] { return std::vector{worker, Self(3)}; });
  const auto before = Values(*sensor.Look());
  const std::string labels = "{4711,3}";
  EXPECT_EQ(before.size(), 5u);
  EXPECT_EQ(before.at("lockstep_rank_threads" + labels), 1);
  std::vector<char> held(64 << 20, 1);
  const std::clock_t until = std::clock() + CLOCKS_PER_SEC / 5;  // More than the kernel's ticks, in which it counts.
  while (std::clock() < until) held[static_cast<size_t>(held[7])] = 1;
  std::jthread thread([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  const auto after = Values(*sensor.Look());
  EXPECT_GT(after.at("lockstep_rank_cpu_seconds_total" + labels),
            before.at("lockstep_rank_cpu_seconds_total" + labels));
  EXPECT_GT(after.at("lockstep_rank_resident_memory_bytes" + labels),
            before.at("lockstep_rank_resident_memory_bytes" + labels) + (60 << 20));
  EXPECT_EQ(after.at("lockstep_rank_threads" + labels), 2);
}

TEST(ProcessSensorTest, AnotherProcessOfThatNumberIsNotTheRank) {
  proc::JobProcess gone = Self(0);
  ++gone.details.start_ticks;
  ProcessSensor sensor("n1", [&] { return std::vector{gone}; });
  EXPECT_TRUE(Values(*sensor.Look()).empty());
}

TEST(RankListTest, LooksOnceForAllWhoAskAndAgainAfterAWhile) {
  int found = 0;
  const auto find = [&] { return ++found, std::vector{Self(0)}; };
  RankList lasting(find, 1h);
  EXPECT_EQ(lasting.Get().size(), 1u);
  EXPECT_EQ(lasting.Get().size(), 1u);
  EXPECT_EQ(found, 1);
  RankList brief(find, 1ms);
  EXPECT_EQ(brief.Get().size(), 1u);
  std::this_thread::sleep_for(2ms);
  EXPECT_EQ(brief.Get().size(), 1u);
  EXPECT_EQ(found, 3);
}

}  // namespace
}  // namespace lockstep::agent
