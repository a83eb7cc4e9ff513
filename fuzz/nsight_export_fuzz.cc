// Nsight Systems' SQLite exports, and what its environment says of ranks. The first byte chooses: odd, the rest is a
// database as it is; even, it is SQL that makes one first, so that the tables behind the page format are reached.
#include <sqlite3.h>

#include <string>
#include <string_view>

#include "ingest/bytes/file_source.h"
#include "ingest/nsight/nsys_export.h"
#include "ingest/nsight/nsys_report.h"
#include "ingest/nsight/rank_environment.h"
#include "ingest/nsight/report_events.h"
#include "nsight_checks.h"

namespace {

using namespace lockstep;

void CheckDatabase(const std::string& bytes) {
  const auto source = ingest::RawMemory(bytes);
  CheckContents(ingest::ReadNsysExport(*source, "", "report", {}), bytes.size() * 8);
}

int StopLate(void* steps) { return ++*static_cast<int*>(steps) > 200 ? 1 : 0; }

/// The database that `sql` makes in memory, as far as it goes.
std::string Make(const std::string& sql) {
  sqlite3* connection = nullptr;
  std::string bytes;
  if (sqlite3_open(":memory:", &connection) == SQLITE_OK) {
    int steps = 0;
    sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, 1 << 20);
    sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_progress_handler(connection, 1000, StopLate, &steps);
    sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr);
    sqlite3_progress_handler(connection, 0, nullptr, nullptr);
    sqlite3_exec(connection, "COMMIT", nullptr, nullptr, nullptr);
    sqlite3_int64 size = 0;
    unsigned char* const copy = sqlite3_serialize(connection, "main", &size, 0);
    if (copy != nullptr) bytes.assign(reinterpret_cast<const char*>(copy), static_cast<size_t>(size));
    sqlite3_free(copy);
  }
  sqlite3_close(connection);
  return bytes;
}

void CheckTexts(std::string_view text) {
  const auto facts =
      ingest::nsight::ReadLaunch([&](std::string_view name) { return ingest::nsight::FindVariable(text, name); });
  if (facts.rank) FUZZ_CHECK(*facts.rank >= 0 && (!facts.world_size || *facts.rank < *facts.world_size));
  (void)ingest::nsight::ReadNcclPayload(text);
  (void)ingest::ReportVersion(text);
  (void)ingest::NsysVersion(text);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  CheckTexts(text);
  CheckDatabase(data[0] % 2 == 1 ? text : Make(text));
  return 0;
}
