// Reading an Nsight Systems SQLite export beside SQLite's own full scans of the same tables, in one process, in turn;
// and what it keeps resident. Makes the export first where it is not there.

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ingest/bytes/file_source.h"
#include "ingest/nsight/nsys_report.h"
#include "measure.h"

namespace {

using namespace lockstep;

constexpr const char* kTables[] = {"StringIds", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME",
                                   "CUPTI_ACTIVITY_KIND_MEMCPY", "NVTX_EVENTS"};

// As schema 3.25 has them, every column.
constexpr const char* kSchema = R"(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER,
  cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
  gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
  staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL,
  localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER,
  sharedMemoryLimitConfig INTEGER, qmdBulkReleaseDone INTEGER, qmdPreexitDone INTEGER, qmdLastCtaDone INTEGER,
  graphId INTEGER, clusterX INTEGER, clusterY INTEGER, clusterZ INTEGER, clusterSchedulingPolicy INTEGER,
  maxPotentialClusterSize INTEGER, maxActiveClusters INTEGER, sharedMemoryRequestedPercentage INTEGER,
  tensorSizeMinusOneElements INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER,
  srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER,
  graphNodeId INTEGER, virtualAddress INTEGER, copyCount INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
  category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER,
  uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL,
  jsonTextId INTEGER, jsonText TEXT, binaryData TEXT);
)";

void Check(int code, sqlite3* connection, const char* what) {
  if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW) {
    throw std::runtime_error(fmt::format("{}: {}", what, sqlite3_errmsg(connection)));
  }
}

class Statement {
 public:
  Statement(sqlite3* connection, const std::string& sql) : connection_(connection) {
    Check(sqlite3_prepare_v2(connection, sql.c_str(), -1, &statement_, nullptr), connection, sql.c_str());
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  /// Binds whole numbers in order and inserts.
  void Insert(std::initializer_list<int64_t> values) {
    int at = 0;
    for (const int64_t value : values) sqlite3_bind_int64(statement_, ++at, value);
    Check(sqlite3_step(statement_), connection_, "insert");
    sqlite3_reset(statement_);
  }
  sqlite3_stmt* get() const { return statement_; }

 private:
  sqlite3* connection_;
  sqlite3_stmt* statement_ = nullptr;
};

void Generate(const std::string& path, double megabytes) {
  constexpr int kNames = 2000;
  constexpr int64_t kPid = (int64_t{1} << 56) | (int64_t{4242} << 24);
  const std::string unfinished = path + ".tmp";
  std::filesystem::remove(unfinished);
  sqlite3* connection = nullptr;
  Check(sqlite3_open(unfinished.c_str(), &connection), connection, "open");
  const auto run = [&](const std::string& sql) {
    Check(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr), connection, sql.c_str());
  };
  run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA page_size=4096;");
  run(kSchema);
  run("BEGIN; INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0'); INSERT INTO "
      "TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '')");
  for (int i = 0; i < kNames; ++i) {
    run(fmt::format("INSERT INTO StringIds VALUES ({}, 'void at::native::kernel_{}<float, (int){}>(float*, int)')", i,
                    i, i));
  }
  {
    Statement kernel(
        connection,
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?1, ?2, 0, 1, NULL, ?3, ?4, ?5, ?6, ?7, NULL, 1, 0, "
        "168, 128, 1, 1, 256, 1, 1, 0, 49152, 0, 127401984, ?4, 102400, NULL, 0, 0, 0, 0, NULL, 1, 1, 1, "
        "0, 8, 132, 0, NULL)");
    Statement call(connection, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?1, ?2, 0, ?3, ?4, ?5, 0, NULL)");
    Statement copy(
        connection,
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?1, ?2, 0, 1, NULL, ?3, ?4, ?5, 4096, 1, NULL, 1, 2, "
        "NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1)");
    Statement range(connection,
                    "INSERT INTO NVTX_EVENTS VALUES (?1, ?2, 59, NULL, NULL, NULL, NULL, ?3, NULL, ?4, 0, NULL, NULL, "
                    "NULL, NULL, NULL, NULL, NULL, NULL, NULL)");
    const auto wanted = static_cast<uint64_t>(megabytes * 1e6);
    int64_t now_ns = 0;
    for (int64_t i = 1;; ++i, now_ns += 10'000) {
      const int64_t name = i * 7919 % kNames;
      range.Insert({now_ns, now_ns + 9'000, kPid + 4300, name});
      call.Insert({now_ns + 1'000, now_ns + 4'000, kPid + 4300, 2 * i, name});
      call.Insert({now_ns + 5'000, now_ns + 6'000, kPid + 4300, 2 * i + 1, name});
      kernel.Insert({now_ns + 8'000, now_ns + 16'000, i % 3 == 0 ? 20 : 7, 2 * i, kPid, name, name});
      if (i % 8 == 0) copy.Insert({now_ns + 17'000, now_ns + 18'000, 21, 2 * i + 1, kPid});
      if (i % 100'000 != 0) continue;
      run("COMMIT; BEGIN");
      if (std::filesystem::file_size(unfinished) >= wanted) break;
    }
  }
  run("COMMIT");
  sqlite3_close(connection);
  std::filesystem::rename(unfinished, path);
}

sqlite3* OpenForScan(const std::string& path) {
  sqlite3* connection = nullptr;
  Check(sqlite3_open_v2(("file:" + path + "?immutable=1").c_str(), &connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI,
                        nullptr),
        connection, "open");
  return connection;
}

/// Every value of every row, as a program sees them that steps through the tables.
uint64_t ScanByStepping(const std::string& path) {
  sqlite3* connection = OpenForScan(path);
  uint64_t sum = 0;
  for (const char* table : kTables) {
    const Statement scan(connection, fmt::format("SELECT * FROM {}", table));
    const int columns = sqlite3_column_count(scan.get());
    while (sqlite3_step(scan.get()) == SQLITE_ROW) {
      for (int i = 0; i < columns; ++i) sum += static_cast<uint64_t>(sqlite3_column_int64(scan.get(), i));
    }
  }
  sqlite3_close(connection);
  return sum;
}

struct Sums {
  const char* table;
  const char* least;  ///< One value of every row: the least that visits them all.
  const char* read;   ///< Every column that is read of it.
};
constexpr Sums kSums[] = {
    {"StringIds", "sum(length(value))", "max(id), sum(length(value))"},
    {"CUPTI_ACTIVITY_KIND_KERNEL", "max(end)",
     "max(start), max(end), max(deviceId), max(streamId), max(correlationId), max(globalPid), max(demangledName), "
     "max(shortName)"},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", "max(end)",
     "max(start), max(end), max(globalTid), max(correlationId), max(nameId)"},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", "max(end)",
     "max(start), max(end), max(deviceId), max(streamId), max(correlationId), max(globalPid), max(copyKind), "
     "max(srcKind), max(dstKind)"},
    {"NVTX_EVENTS", "max(end)",
     "max(start), max(end), max(eventType), max(text), max(textId), max(globalTid), max(domainId), max(jsonText), "
     "max(jsonTextId)"},
};

/// SQLite alone, from the first row to the last: it keeps the largest of every column itself.
uint64_t ScanInside(const std::string& path, bool all_that_is_read) {
  sqlite3* connection = OpenForScan(path);
  uint64_t sum = 0;
  for (const Sums& sums : kSums) {
    const Statement scan(connection,
                         fmt::format("SELECT {} FROM {}", all_that_is_read ? sums.read : sums.least, sums.table));
    if (sqlite3_step(scan.get()) == SQLITE_ROW) sum += static_cast<uint64_t>(sqlite3_column_int64(scan.get(), 0));
  }
  sqlite3_close(connection);
  return sum;
}

uint64_t Read(const std::string& path) {
  auto source = ingest::OpenRawFile(path);
  if (!source) throw std::runtime_error(source.error().ToString());
  const auto contents = ingest::ReadNsysExport(**source, path, path, {});
  if (!contents) throw std::runtime_error(contents.error().ToString());
  uint64_t events = 0;
  for (const ingest::TraceContent& content : *contents) events += content.trace.complete_event_count;
  return events;
}

void Print(const char* what, const bench::Paired& paired, double bytes) {
  fmt::print("{:<52} {:7.0f} MB/s   ours {:7.0f} MB/s   ratio {:.2f} ({:.2f}-{:.2f})\n", what,
             bytes / paired.first_seconds / 1e6, bytes / paired.second_seconds / 1e6, paired.ratio, paired.low,
             paired.high);
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Reads an Nsight Systems export beside SQLite's own scans");
  std::string path = "nsight.sqlite";
  double megabytes = 1000;
  int rounds = 3;
  bool only_read = false;
  app.add_option("--file", path, "The export; made when it is not there");
  app.add_option("--megabytes", megabytes, "Its size when it is made");
  app.add_option("--rounds", rounds, "Of each comparison");
  app.add_flag("--only-read", only_read, "Read it once and say no more than how many events");
  CLI11_PARSE(app, argc, argv);

  if (!std::filesystem::exists(path)) Generate(path, megabytes);
  if (only_read) {
    fmt::print("{}\n", Read(path));
    return 0;
  }
  const auto bytes = static_cast<double>(std::filesystem::file_size(path));
  uint64_t events = 0;
  uint64_t ignored = 0;
  const auto ours = [&] { events = Read(path); };
  const auto compare = [&](const char* what, const std::function<uint64_t()>& scan) {
    Print(what,
          bench::RunPaired(
              rounds, bench::Clock::kCpu, [&] { ignored += scan(); }, ours),
          bytes);
  };
  compare("SQLite, every value by stepping", [&] { return ScanByStepping(path); });
  compare("SQLite inside, the columns that are read", [&] { return ScanInside(path, true); });
  compare("SQLite inside, one column of each table", [&] { return ScanInside(path, false); });
  const bench::ChildRun child = bench::RunChild({argv[0], "--file", path, "--only-read"});
  fmt::print("{} events in {:.0f} MB; {:.1f} bytes resident an event ({:.0f} MiB in all){}\n", events, bytes / 1e6,
             static_cast<double>(child.peak_bytes) / static_cast<double>(events),
             static_cast<double>(child.peak_bytes) / 1048576.0, ignored == 0 ? " " : "");
  return 0;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
