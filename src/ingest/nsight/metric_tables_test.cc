#include "ingest/nsight/metric_tables.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "ingest/bytes/file_source.h"
#include "ingest/nsight/database_for_test.h"
#include "ingest/nsight/nsys_report.h"

namespace lockstep::ingest {
namespace {

using nsight::test::Execute;
using nsight::test::kPid;
using nsight::test::kSchema;
using nsight::test::kStartNs;
using nsight::test::TestFolder;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

/// Names and columns as the SQLite schema of Nsight Systems documents them (docs/formats/nsight.md).
constexpr const char* kMetricSchema = R"(
  CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER, pwGpuId INTEGER,
      cuDevice INTEGER);
  CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER, sourceId INTEGER, typeName TEXT, metricId INTEGER,
      metricName TEXT);
  CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER);
)";
constexpr int64_t kTypeBase = 0x1000100000000;  // The lowest byte says which device.

class MetricTablesTest : public testing::Test {
 protected:
  void SetUp() override {
    Sql(kSchema);
    Sql(kMetricSchema);
  }
  void Sql(const std::string& sql) { Execute(path_, sql); }
  void Gpu(int id, int sampled, int ordinal) {
    Sql(fmt::format("INSERT INTO TARGET_INFO_GPU VALUES ({}, 'H100', 80, 132, {}, {})", id, sampled, ordinal));
    Sql(fmt::format(
        "INSERT INTO TARGET_INFO_GPU_METRICS VALUES ({0}, 1, 'GPU Metrics', 3, 'SMs Active [Throughput %]'),"
        "({0}, 1, 'GPU Metrics', 4, 'GPC Clock Frequency [MHz]')",
        kTypeBase + sampled));
  }
  void Sample(int64_t time_ns, int sampled, int metric, int64_t value) {
    Sql(fmt::format("INSERT INTO GPU_METRICS VALUES ({}, {}, {}, {})", time_ns, kTypeBase + sampled, metric, value));
  }
  void Kernel(int device, int64_t pid = kPid) {
    Sql(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, {}, 7, 1, {}, 1, 2)", device, pid));
  }
  std::vector<TraceContent> Read() {
    auto source = OpenRawFile(path_);
    EXPECT_TRUE(source);
    auto contents = ReadNsysExport(**source, path_, "report.sqlite", {});
    EXPECT_TRUE(contents) << contents.error().ToString();
    if (!contents) return std::vector<TraceContent>(1);
    return std::move(*contents);
  }
  static std::vector<std::string> Counters(const TraceContent& content) {
    std::vector<std::string> lines;
    for (const model::CounterSeries& series : content.trace.counters) {
      std::string line = fmt::format("{}|{}|{}:", series.device ? fmt::to_string(series.device->value) : "-",
                                     series.name, series.unit);
      for (size_t i = 0; i < series.size(); ++i) {
        line += fmt::format(" {}={}", series.time_ns[i] - kStartNs, series.value[i]);
      }
      lines.push_back(line);
    }
    return lines;
  }
  static std::vector<std::string> Codes(const TraceContent& content) {
    std::vector<std::string> codes;
    for (const model::LedgerEntry& entry : content.ledger.entries()) codes.push_back(entry.code);
    return codes;
  }

 private:
  TestFolder folder_;
  std::string path_ = folder_.File("report.sqlite");
};

TEST_F(MetricTablesTest, SamplesBecomeSeriesOfTheDeviceAsTheRankCallsIt) {
  Gpu(0, 2, 5);
  Gpu(1, 6, 1);
  Kernel(5);
  Sample(300, 2, 3, 80);
  Sample(200, 2, 3, 40);
  Sample(200, 2, 4, 1410);
  Sample(-5, 2, 3, 1);
  Sample(200, 6, 3, 9);
  const std::vector<TraceContent> contents = Read();
  EXPECT_THAT(Counters(contents[0]), ElementsAre("1|SMs Active|%: 200=9", "5|GPC Clock Frequency|MHz: 200=1410",
                                                 "5|SMs Active|%: 200=40 300=80"))
      << "by time; what another rank may use has the machine's number";
}

TEST_F(MetricTablesTest, EveryProcessGetsItsOwnDevice) {
  Gpu(0, 0, 0);
  Gpu(1, 1, 1);
  constexpr int64_t kOther = int64_t{77} << 24;
  Kernel(0);
  Kernel(1, kOther);
  Sample(10, 0, 3, 1);
  Sample(10, 1, 3, 2);
  const std::vector<TraceContent> contents = Read();
  ASSERT_EQ(contents.size(), 2u);
  EXPECT_THAT(Counters(contents[0]), ElementsAre("0|SMs Active|%: 10=1"));
  EXPECT_THAT(Counters(contents[1]), ElementsAre("1|SMs Active|%: 10=2"));
}

TEST_F(MetricTablesTest, ADeviceWhoseNumberTheRankGivesToAnotherIsLeftOut) {
  // Four devices in the machine, of which the process saw one, and called it 0.
  Gpu(3, 3, 3);
  Gpu(0, 0, 0);
  Sql("CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER)");
  Sql("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, 42)");
  Kernel(0);
  Sample(10, 3, 3, 33);
  Sample(10, 0, 3, 11);
  const std::vector<TraceContent> contents = Read();
  EXPECT_THAT(Counters(contents[0]), ElementsAre("0|SMs Active|%: 10=33"));
  EXPECT_THAT(Codes(contents[0]), Contains("nsys_other_gpus"));
}

TEST_F(MetricTablesTest, SamplesThatNothingNamesAreCounted) {
  Gpu(0, 0, 0);
  Sample(10, 0, 99, 1);
  Sample(10, 0, 3, 7);
  const std::vector<TraceContent> contents = Read();
  EXPECT_THAT(Counters(contents[0]), ElementsAre("0|SMs Active|%: 10=7"));
  EXPECT_THAT(Codes(contents[0]), Contains("nsys_unnamed_metric"));
}

TEST_F(MetricTablesTest, OlderVersionsPutASampleIntoTheJsonOfAnEvent) {
  Sql("CREATE TABLE GENERIC_EVENTS (rawTimestamp INTEGER, timestamp INTEGER, typeId INTEGER, data TEXT)");
  Sql(fmt::format(R"(INSERT INTO GENERIC_EVENTS VALUES
      (900, 10, {0}, '{{"SM Active": "12", "SM Issue": "3", "name": "x"}}'), (20, NULL, {0}, '{{"SM Active": 13}}'),
      (30, 30, {0}, '{{"SM Active"'), (30, 30, {1}, '{{"pid": "4"}}'))",
                  kTypeBase, kTypeBase + 1));
  EXPECT_THAT(Counters(Read()[0]), ElementsAre("0|SM Active|: 10=12 20=13", "0|SM Issue|: 10=3"));
}

TEST_F(MetricTablesTest, NetworkCardsAreOfTheHost) {
  Sql(R"(
    CREATE TABLE NET_NIC_METRIC (start INTEGER, end INTEGER, globalId INTEGER, portId INTEGER, metricsListId INTEGER,
        metricsIdx INTEGER, value INTEGER);
    CREATE TABLE TARGET_INFO_NETWORK_METRICS (metricsListId INTEGER, metricsIdx INTEGER, name TEXT, description TEXT,
        unit TEXT);
    CREATE TABLE NIC_ID_MAP (nicId INTEGER, globalId INTEGER);
    CREATE TABLE TARGET_INFO_NIC_INFO (GUID INTEGER, stateName TEXT, nicId INTEGER, name TEXT, deviceId INTEGER,
        vendorId INTEGER, linkLayer INTEGER);
    INSERT INTO TARGET_INFO_NIC_INFO VALUES (1, 'UP', 4, 'mlx5_0', 1, 1, 1);
    INSERT INTO NIC_ID_MAP VALUES (4, 1000);
    INSERT INTO TARGET_INFO_NETWORK_METRICS VALUES (1, 0, 'IB: Bytes sent', '', 'B/ms');
    INSERT INTO NET_NIC_METRIC VALUES (10, 20, 1000, 1, 1, 0, 4096), (20, 30, 1000, 1, 1, 0, 8192),
        (20, 30, 2000, 1, 1, 0, 5), (20, 30, 1000, 1, 1, 9, 5);
  )");
  Kernel(0);
  EXPECT_THAT(Counters(Read()[0]), ElementsAre("-|NIC 2000 port 1: IB: Bytes sent|B/ms: 20=5",
                                               "-|mlx5_0 port 1: IB: Bytes sent|B/ms: 10=4096 20=8192"));
}

TEST_F(MetricTablesTest, ANodeThatWasOnlySampledIsRead) {
  Gpu(0, 0, 0);
  Sample(10, 0, 3, 7);
  const std::vector<TraceContent> contents = Read();
  ASSERT_EQ(contents.size(), 1u);
  EXPECT_THAT(Counters(contents[0]), ElementsAre("0|SMs Active|%: 10=7"));
}

TEST_F(MetricTablesTest, TimesThatNoClockCanShowAreLeftOut) {
  Gpu(0, 0, 0);
  Sample(INT64_MAX - 1, 0, 3, 7);
  const std::vector<TraceContent> contents = Read();
  EXPECT_THAT(Counters(contents[0]), IsEmpty());
  EXPECT_THAT(Codes(contents[0]), Contains("integer_overflow"));
}

}  // namespace
}  // namespace lockstep::ingest
