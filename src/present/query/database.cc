#include "present/query/database.h"

#include <fmt/format.h>

#include <utility>

#include "base/cell.h"
#include "present/query/functions.h"
#include "present/query/query_error.h"
#include "present/query/tables.h"
#include "present/query/virtual_table.h"

namespace lockstep::query {
namespace {

// Instructions of SQLite's machine between two looks at the stop sign.
constexpr int kStepsBetweenChecks = 1000;

std::string BlobText(const void* data, int size) {
  std::string text = "x'";
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (int i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text + "'";
}

void ReadCell(sqlite3_stmt* statement, int column, Cell* cell) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: *cell = int64_t{sqlite3_column_int64(statement, column)}; return;
    case SQLITE_FLOAT: *cell = sqlite3_column_double(statement, column); return;
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      if (text == nullptr) throw std::bad_alloc();
      *cell = std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement, column)));
      return;
    }
    case SQLITE_BLOB: {
      const void* data = sqlite3_column_blob(statement, column);
      *cell = BlobText(data, data == nullptr ? 0 : sqlite3_column_bytes(statement, column));
      return;
    }
    default: *cell = std::monostate{};
  }
}

}  // namespace

Result<std::unique_ptr<Database>> Database::Open(const QueryLimits& limits) {
  std::unique_ptr<Database> database(new Database(limits));
  const auto failed = [&](int code) {
    return Error{.code = ErrorCode::kIo, .message = fmt::format("SQLite cannot be started: {}", sqlite3_errstr(code))};
  };
  int code = sqlite3_open_v2(":memory:", &database->connection_,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX, NoFilesName());
  if (code != SQLITE_OK) return failed(code);
  sqlite3_extended_result_codes(database->connection_, 0);
  sqlite3_hard_heap_limit64(limits.memory_bytes);
  for (const auto& table : AllTables()) {
    code = RegisterTable(database->connection_, table.get(), &database->source_);
    if (code != SQLITE_OK) return failed(code);
  }
  code = RegisterFunctions(database->connection_);
  if (code != SQLITE_OK) return failed(code);
  code = LockDown(database->connection_, &database->usage_);
  if (code != SQLITE_OK) return failed(code);
  sqlite3_progress_handler(
      database->connection_, kStepsBetweenChecks,
      [](void* stop) { return static_cast<StopSign*>(stop)->Check() ? 1 : 0; }, &database->stop_);
  return database;
}

Database::~Database() { sqlite3_close_v2(connection_); }

void Database::Arm() {
  std::optional<StopSign::Clock::time_point> deadline;
  if (limits_.timeout) deadline = StopSign::Clock::now() + *limits_.timeout;
  stop_.Arm(deadline);
}

QueryError Database::ErrorOf(int code, std::string_view sql) const {
  QueryError error;
  switch (code & 0xff) {
    case SQLITE_INTERRUPT:
      if (stop_.timed_out()) {
        return {QueryError::Kind::kTimeout,
                fmt::format("took longer than {:g} s and was ended; give it more with --timeout, or narrow it by rank, "
                            "name or start_ns",
                            static_cast<double>(limits_.timeout->count()) / 1000)};
      }
      return {QueryError::Kind::kInterrupted, "interrupted"};
    case SQLITE_NOMEM:
      return {QueryError::Kind::kMemory,
              fmt::format("needs more than {} MiB for sorting and grouping; give it more with --max-memory, or select "
                          "fewer rows and columns",
                          limits_.memory_bytes >> 20)};
    case SQLITE_AUTH:
      if (!usage_.refusal.empty()) error.message = usage_.refusal;
      break;
    case SQLITE_INTERNAL:
    case SQLITE_MISUSE:
    case SQLITE_CORRUPT: error.kind = QueryError::Kind::kInternal; break;
    default: break;
  }
  if (error.message.empty()) error.message = sqlite3_errmsg(connection_);
  const int offset = sqlite3_error_offset(connection_);
  if (offset >= 0 && static_cast<size_t>(offset) <= sql.size()) error.offset = static_cast<size_t>(offset);
  NameTheUnknown(sql, &error);
  return error;
}

tl::expected<Database::Statement, QueryError> Database::Prepare(std::string_view sql) {
  usage_ = Usage();
  if (const size_t null_byte = sql.find('\0'); null_byte != std::string_view::npos)
    return tl::unexpected(QueryError{QueryError::Kind::kStatement, "there is a byte 0 in it", null_byte});
  sqlite3_stmt* prepared = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(connection_, sql.data(),
                                      static_cast<int>(std::min<size_t>(sql.size(), INT32_MAX)), &prepared, &rest);
  Statement statement(prepared, sqlite3_finalize);
  if (code != SQLITE_OK) return tl::unexpected(ErrorOf(code, sql));
  if (prepared == nullptr)
    return tl::unexpected(QueryError{QueryError::Kind::kStatement, "there is no statement in it"});
  // Behind it there may be blanks and comments, which prepare to nothing.
  const std::string_view behind = sql.substr(static_cast<size_t>(rest - sql.data()));
  const Usage usage = usage_;
  sqlite3_stmt* second = nullptr;
  const int second_code =
      sqlite3_prepare_v2(connection_, behind.data(), static_cast<int>(behind.size()), &second, nullptr);
  sqlite3_finalize(second);
  usage_ = usage;
  if (second != nullptr || second_code != SQLITE_OK) {
    return tl::unexpected(QueryError{QueryError::Kind::kStatement,
                                     "one statement at a time: there is more behind the first ';'",
                                     sql.size() - behind.size()});
  }
  // REINDEX of nothing, or an empty transaction, gets past the authorizer and has no columns.
  if (sqlite3_stmt_readonly(prepared) == 0 || sqlite3_column_count(prepared) == 0)
    return tl::unexpected(QueryError{QueryError::Kind::kStatement, "only statements that read are allowed"});
  return statement;
}

tl::expected<std::set<std::string>, QueryError> Database::Inspect(std::string_view sql) {
  Arm();
  auto statement = Prepare(sql);
  if (!statement) return tl::unexpected(std::move(statement).error());
  return usage_.tables;
}

tl::expected<QuerySummary, QueryError> Database::Run(std::string_view sql, RowWriter& writer) {
  Arm();
  auto statement = Prepare(sql);
  if (!statement) return tl::unexpected(std::move(statement).error());
  const int column_count = sqlite3_column_count(statement->get());
  std::vector<std::string> names;
  for (int i = 0; i < column_count; ++i) {
    const char* name = sqlite3_column_name(statement->get(), i);
    if (name == nullptr) return tl::unexpected(ErrorOf(SQLITE_NOMEM, sql));
    names.emplace_back(name);
  }
  QuerySummary summary;
  std::vector<Cell> cells(names.size());
  bool begun = false;
  while (true) {
    const int code = sqlite3_step(statement->get());
    if (code != SQLITE_ROW && code != SQLITE_DONE) return tl::unexpected(ErrorOf(code, sql));
    // Not before the first step: a query that fails at once has printed nothing.
    if (!begun) writer.Begin(names);
    begun = true;
    if (code == SQLITE_DONE) break;
    try {
      for (int i = 0; i < column_count; ++i) ReadCell(statement->get(), i, &cells[static_cast<size_t>(i)]);
    } catch (const std::bad_alloc&) {
      return tl::unexpected(ErrorOf(SQLITE_NOMEM, sql));
    }
    writer.Row(cells);
    ++summary.row_count;
    if (writer.closed()) break;
  }
  writer.End();
  return summary;
}

}  // namespace lockstep::query
