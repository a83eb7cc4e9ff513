#include "ingest/nsight/nsys_report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "ingest/bytes/file_source.h"
#include "ingest/nsight/database_for_test.h"

namespace lockstep::ingest {
namespace {

using nsight::test::BytesOf;
using nsight::test::Execute;
using nsight::test::kPid;
using nsight::test::kSchema;
using nsight::test::kStartNs;
using nsight::test::kTid;
using nsight::test::TestFolder;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class NsysReportTest : public testing::Test {
 protected:
  void SetUp() override { Execute(path_, kSchema); }

  std::vector<TraceContent> Read() {
    auto contents = TryRead();
    if (!contents) {
      ADD_FAILURE() << contents.error().ToString();
      return std::vector<TraceContent>(1);
    }
    return std::move(*contents);
  }
  Result<std::vector<TraceContent>> TryRead() {
    auto source = OpenRawFile(path_);
    if (!source) return std::move(source).error();
    return ReadNsysExport(**source, path_, "report.sqlite", {});
  }
  void Sql(const std::string& sql) { Execute(path_, sql); }
  void Kernel(int64_t start, int64_t end, int64_t pid = kPid, int device = 0, int correlation = 1) {
    Sql(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, {}, 7, {}, {}, 1, 2)", start, end, device,
                    correlation, pid));
  }
  void Range(int64_t start, const std::string& end, const std::string& text, int type = 59, int64_t tid = kTid,
             int domain = 0) {
    Sql(fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, {}, '{}', {}, NULL, {})", start, end, type, text, tid,
                    domain));
  }

  static std::vector<std::string> Events(const TraceContent& content, const model::NameTable& names, model::Lane lane) {
    std::vector<std::string> events;
    for (const model::Track& track : content.trace.tracks) {
      if (track.lane != lane) continue;
      for (size_t i = 0; i < track.events.size(); ++i) {
        events.push_back(fmt::format("{} {}+{} {}", model::CategoryName(track.events.category[i]),
                                     track.events.start_ns[i] - (content.trace.base_time_known ? kStartNs : 0),
                                     track.events.duration_ns[i], names[track.events.name[i]]));
      }
    }
    return events;
  }
  static std::vector<std::string> Codes(const std::vector<TraceContent>& contents) {
    std::vector<std::string> codes;
    for (const model::LedgerEntry& entry : contents.front().ledger.entries()) codes.push_back(entry.code);
    return codes;
  }

  TestFolder folder_;
  std::string path_ = folder_.File("report.sqlite");
};

TEST_F(NsysReportTest, KernelsAndCallsAreJoinedByCorrelationAsInPyTorchsTraces) {
  Kernel(1000, 3000);
  Sql(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, 600, {0}, 1, 3), (700, 800, {0}, 2, 4)", kTid));
  const auto contents = Read();
  ASSERT_EQ(contents.size(), 1u);
  const model::NameTable& names = contents[0].names;
  EXPECT_THAT(Events(contents[0], names, model::Lane::kDevice), testing::ElementsAre("kernel 1000+2000 gemm(float*)"));
  EXPECT_THAT(Events(contents[0], names, model::Lane::kRuntime),
              testing::ElementsAre("runtime 500+100 cudaLaunchKernel", "driver 700+100 cuLaunchKernelEx"));
  const model::RankTrace& trace = contents[0].trace;
  EXPECT_EQ(trace.host, "node7");
  EXPECT_TRUE(trace.base_time_known);
  for (const model::Track& track : trace.tracks) {
    EXPECT_EQ(track.events.correlation[0], 1u);
    if (track.lane == model::Lane::kDevice) {
      EXPECT_EQ(std::pair(track.process_id, track.thread_id), std::pair(int64_t{0}, int64_t{7}));
    } else {
      EXPECT_EQ(std::pair(track.process_id, track.thread_id), std::pair(int64_t{42}, int64_t{43}));
    }
  }
}

TEST_F(NsysReportTest, TimesThatAreUnixTimeAlreadyAreNotMovedTwice) {
  Sql(
      fmt::format("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PARAM_TIME_NORMALIZE', 'true'), "
                  "('EXPORT_CONFIG_TIME_SHIFT', '{}')",
                  kStartNs));
  Kernel(kStartNs + 1000, kStartNs + 3000);
  EXPECT_EQ(Read()[0].trace.first_ns, kStartNs + 1000);
}

TEST_F(NsysReportTest, ARangeTakesItsDomainsNameEvenWhenThatComesLater) {
  Range(100, "200", "all_reduce", 59, kTid, 3);
  Range(-500, "NULL", "gloo", 75, kTid, 3);
  Range(250, "300", "forward");
  Sql(fmt::format("INSERT INTO NVTX_EVENTS VALUES (310, 320, 59, NULL, {}, 5, 0)", kTid));
  const auto contents = Read();
  EXPECT_THAT(Events(contents[0], contents[0].names, model::Lane::kOperators),
              testing::ElementsAre("user_annotation 100+100 gloo:all_reduce", "user_annotation 250+50 forward",
                                   "user_annotation 310+10 forward"));
  ASSERT_EQ(contents[0].trace.collectives.size(), 1u);
  EXPECT_EQ(contents[0].trace.collectives[0].start_ns, kStartNs + 100);
}

TEST_F(NsysReportTest, ARecordingThatBeganMidwayIsSaid) {
  Range(100, "200", "step 1");
  Range(50, "NULL", "gloo", 75, kTid, 3);
  EXPECT_THAT(Codes(Read()), Not(Contains("capture_began_midway")));
  Range(-500, "NULL", "train", 75, kTid, 4);
  EXPECT_THAT(Codes(Read()), Contains("capture_began_midway"));
}

TEST_F(NsysReportTest, OperatorsOfPyTorchLoseTheirSuffix) {
  Range(100, "200", "aten::mm, op_id = 990347, seq = 3");
  Range(210, "220", "ProfilerStep#4, op_id = 5");
  const auto contents = Read();
  EXPECT_THAT(Events(contents[0], contents[0].names, model::Lane::kOperators),
              testing::ElementsAre("cpu_op 100+100 aten::mm", "user_annotation 210+10 ProfilerStep#4"));
}

TEST_F(NsysReportTest, RangesThatCrossLieOnTracksOfTheirOwn) {
  Range(0, "100", "a");
  Range(50, "150", "b", 60);
  Range(60, "90", "c");
  Range(200, "300", "d");
  const auto contents = Read();
  ASSERT_EQ(contents[0].trace.tracks.size(), 2u);
  for (const model::Track& track : contents[0].trace.tracks) {
    const auto& events = track.events;
    EXPECT_EQ(events.size(), track.thread_id == 43 ? 3u : 1u);
    for (size_t i = 1; i < events.size(); ++i) {
      EXPECT_TRUE(events.start_ns[i] >= events.end_ns(i - 1) || events.end_ns(i) <= events.end_ns(i - 1));
    }
  }
}

TEST_F(NsysReportTest, ARangeThatIsNeverClosedEndsWithTheRecording) {
  Range(100, "NULL", "open");
  Kernel(1000, 5000);
  const auto contents = Read();
  EXPECT_THAT(Events(contents[0], contents[0].names, model::Lane::kOperators),
              testing::ElementsAre("user_annotation 100+4900 open"));
  EXPECT_THAT(Codes(contents), Contains("unfinished_range"));
}

TEST_F(NsysReportTest, TheLaunchersVariablesSayTheRank) {
  Sql("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, 'DeviceEnvironment', 610, 'LS_COLORS=a;RANK=3;WORLD_SIZE=8;X=1')");
  Kernel(0, 1);
  const auto contents = Read();
  EXPECT_TRUE(contents[0].has_rank);
  EXPECT_EQ(contents[0].trace.rank.value, 3);
  EXPECT_EQ(contents[0].trace.world_size, 8);
}

TEST_F(NsysReportTest, SeveralProcessesWithDevicesAreSeveralRanksAndThatIsAGuess) {
  Sql("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, 'DeviceEnvironment', 610, 'RANK=3;WORLD_SIZE=8')");
  Kernel(10, 20, int64_t{50} << 24, 0);
  Kernel(10, 30, int64_t{40} << 24, 1);
  Range(0, "5", "of the launcher", 59, (int64_t{9} << 24) + 9);
  const auto contents = Read();
  ASSERT_EQ(contents.size(), 2u);
  EXPECT_FALSE(contents[0].has_rank) << "the variables are those of the launcher that nsys started";
  EXPECT_EQ(contents[0].trace.DeviceOrdinals(), (std::vector<DeviceOrdinal>{{0}}));
  EXPECT_EQ(contents[1].trace.DeviceOrdinals(), (std::vector<DeviceOrdinal>{{1}}));
  EXPECT_THAT(Codes(contents), Contains("nsys_rank_guess"));
  EXPECT_THAT(Codes(contents), Contains("nsys_other_processes"));
}

TEST_F(NsysReportTest, WithoutColumnOfProcessesEachDeviceIsARank) {
  Sql("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, "
      "deviceId INTEGER, streamId INTEGER, shortName INTEGER); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
      "(1, 2, 0, 7, 2), (3, 4, 1, 7, 2)");
  const auto contents = Read();
  ASSERT_EQ(contents.size(), 2u);
  EXPECT_THAT(Codes(contents), Contains("nsys_rank_guess"));
}

TEST_F(NsysReportTest, MissingTablesAndColumnsAreNoError) {
  Sql("DROP TABLE NVTX_EVENTS; DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME; DROP TABLE TARGET_INFO_SESSION_START_TIME; "
      "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN streamId; DROP TABLE StringIds");
  Sql(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 5, 0, 1, {}, 1, 2)", kPid));
  const auto contents = Read();
  EXPECT_FALSE(contents[0].trace.base_time_known);
  EXPECT_THAT(Events(contents[0], contents[0].names, model::Lane::kDevice),
              testing::ElementsAre("kernel 1+4 [string 1 is missing]"));
}

TEST_F(NsysReportTest, RowsOfNonsenseAreCountedAndLeftOut) {
  Kernel(100, 50);
  Sql(
      fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (NULL, 5, 0, 7, 1, {0}, 1, 2), "
                  "(9223372036854775807, 1, 0, 7, 1, {0}, 1, 2), (1, 2, 0, 7, -5, {0}, 1, 2), "
                  "('abc', x'00ff', 0, 7, 99999999999, {0}, 1, 2)",
                  kPid));
  const auto contents = Read();
  EXPECT_THAT(Codes(contents),
              testing::IsSupersetOf({"nsys_row_without_time", "integer_overflow", "negative_duration"}));
  EXPECT_THAT(Events(contents[0], contents[0].names, model::Lane::kDevice), Contains("kernel 100+0 gemm(float*)"));
}

TEST_F(NsysReportTest, NamesWithNulAndBrokenUtf8AreShown) {
  Sql("UPDATE StringIds SET value = CAST(x'6100ff62' AS TEXT) WHERE id = 1");
  Kernel(1, 2);
  const auto contents = Read();
  EXPECT_THAT(Events(contents[0], contents[0].names, model::Lane::kDevice),
              testing::ElementsAre("kernel 1+1 a \xEF\xBF\xBD"
                                   "b"));
}

TEST_F(NsysReportTest, NoKernelsIsSaidAndNotZero) {
  Sql(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, 600, {}, 1, 3)", kTid));
  EXPECT_THAT(Codes(Read()), Contains("nsys_no_kernels"));
  Kernel(1, 2);
  EXPECT_THAT(Codes(Read()), Not(Contains("nsys_no_kernels")));
}

TEST_F(NsysReportTest, AGraphTracedAsAWholeIsOneKernelAndSaid) {
  Sql(
      fmt::format("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, "
                  "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER); INSERT INTO "
                  "CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (10, 90, 0, 7, 5, {}, 3)",
                  kPid));
  const auto contents = Read();
  EXPECT_THAT(Events(contents[0], contents[0].names, model::Lane::kDevice),
              testing::ElementsAre("kernel 10+80 CUDA graph 3"));
  EXPECT_THAT(Codes(contents), Contains("nsys_graphs_whole"));
  EXPECT_THAT(Codes(contents), Not(Contains("nsys_no_kernels")));
}

TEST_F(NsysReportTest, AWaitForAnEventKnowsWhereItWasRecorded) {
  Sql(fmt::format(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (globalPid INTEGER, eventSyncId INTEGER, streamId INTEGER, "
      "correlationId INTEGER); CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId "
      "INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventSyncId INTEGER); "
      "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES ({0}, 9, 20, 77); "
      "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (5, 8, 0, 7, 80, {0}, 2, 9), "
      "(9, 12, 0, 4294967295, 81, {0}, 4, NULL)",
      kPid));
  const auto contents = Read();
  const auto& records = contents[0].trace.synchronisations;
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].kind, model::SyncRecord::Kind::kStreamWaitEvent);
  EXPECT_EQ(records[0].stream, 7);
  EXPECT_EQ(records[0].event_stream, 20);
  EXPECT_EQ(records[0].event_record_correlation, 77u);
  EXPECT_EQ(records[1].kind, model::SyncRecord::Kind::kContext);
  EXPECT_EQ(records[1].stream, std::nullopt);
}

TEST_F(NsysReportTest, AForeignDatabaseIsRefusedByName) {
  path_ = folder_.File("other.sqlite");
  Sql("CREATE TABLE accounts (id INTEGER)");
  const auto contents = TryRead();
  ASSERT_FALSE(contents);
  EXPECT_EQ(contents.error().code, ErrorCode::kCorruptData);
  EXPECT_THAT(contents.error().message, HasSubstr("nsys export"));
}

TEST_F(NsysReportTest, ViewsTriggersAndVirtualTablesNeverRun) {
  Kernel(1, 2);
  Sql("DROP TABLE NVTX_EVENTS; CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE c(start) AS (SELECT 1 UNION ALL SELECT "
      "start + 1 FROM c) SELECT start, start + 1 AS end, 59 AS eventType, 'x' AS text, 0 AS globalTid FROM c; "
      "CREATE VIRTUAL TABLE OSRT_API USING fts5(start, end); "
      "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN DELETE FROM StringIds; END;"
      "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN graphNodeId INTEGER GENERATED ALWAYS AS "
      "(abs(-9223372036854775808)) "
      "VIRTUAL");
  const std::string before = BytesOf(path_);
  const auto contents = Read();
  EXPECT_EQ(contents[0].trace.complete_event_count, 1u);
  EXPECT_EQ(BytesOf(path_), before);
}

TEST_F(NsysReportTest, NothingIsWrittenBesideTheFileAndALeftLogIsSaid) {
  Kernel(1, 2);
  Sql("PRAGMA journal_mode = WAL");
  std::ofstream(path_ + "-wal") << "rows that were never moved";
  const size_t files = folder_.FileCount();
  EXPECT_THAT(Codes(Read()), Contains("nsys_log_ignored"));
  EXPECT_EQ(folder_.FileCount(), files);
}

TEST_F(NsysReportTest, AFileCutAnywhereIsReadAsFarAsItGoesOrRefused) {
  std::string sql = "BEGIN;";
  for (int i = 0; i < 2000; ++i) {
    sql += fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, 0, 7, {}, {}, 1, 2);", i * 10,
                       i * 10 + 5, i, kPid);
  }
  Sql(sql + "COMMIT");
  const std::string whole = BytesOf(path_);
  size_t partly = 0;
  for (size_t size = 100; size < whole.size(); size += 4093) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    auto contents = TryRead();
    if (!contents) {
      EXPECT_FALSE(contents.error().message.empty());
      continue;
    }
    EXPECT_TRUE((*contents)[0].ledger.Has(model::Severity::kError)) << "cut at " << size;
    partly += (*contents)[0].trace.complete_event_count > 0 ? 1 : 0;
  }
  EXPECT_GT(partly, 0u);
}

TEST_F(NsysReportTest, BytesFromElsewhereReadLikeTheFile) {
  for (int i = 0; i < 100; ++i) Kernel(i * 10, i * 10 + 5, kPid, 0, i);
  const auto in_place = Read();
  const auto source = RawMemory(BytesOf(path_));
  const auto spooled = ReadNsysExport(*source, "", "report.sqlite", {});
  ASSERT_TRUE(spooled) << spooled.error().ToString();
  EXPECT_EQ(Events((*spooled)[0], (*spooled)[0].names, model::Lane::kDevice),
            Events(in_place[0], in_place[0].names, model::Lane::kDevice));
}

TEST_F(NsysReportTest, ALargeOneFromElsewhereGoesThroughAFileThatIsGoneAfterwards) {
  Kernel(10, 30);
  Sql("CREATE TABLE padding (x BLOB); INSERT INTO padding VALUES (zeroblob(70000000))");
  const auto source = RawMemory(BytesOf(path_));
  const std::string temporary = folder_.File("temporary");
  std::filesystem::create_directory(temporary);
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TMPDIR", temporary.c_str(), 1);
  const auto spooled = ReadNsysExport(*source, "", "report.sqlite", {});
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", kept.c_str(), 1);
  ASSERT_TRUE(spooled) << spooled.error().ToString();
  EXPECT_THAT(Events((*spooled)[0], (*spooled)[0].names, model::Lane::kDevice),
              testing::ElementsAre("kernel 10+20 gemm(float*)"));
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
}

}  // namespace
}  // namespace lockstep::ingest
