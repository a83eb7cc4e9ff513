#include "ingest/nsight/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/ascii.h"
#include "base/letter_case.h"
#include "base/temporary_folder.h"
#include "base/unique_fd.h"

namespace lockstep::ingest::nsight {
namespace {

using namespace std::string_view_literals;

constexpr size_t kInMemoryBytes = size_t{64} << 20;
constexpr int kMaxValueBytes = 64 << 20;
constexpr int kMaxColumns = 500;
constexpr const char* kRowFunction = "lockstep_row";
constexpr const char* kSpooled = "export.sqlite";

std::string Quoted(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string UriOf(const std::string& path) {
  std::string uri = "file:";
  // A path that begins with two slashes would name a host.
  if (path.starts_with("//")) uri += "//";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return uri + "?mode=ro&immutable=1";
}

Error ErrnoError(const char* what, const std::string& name) {
  return {.code = ErrorCode::kIo,
          .message = fmt::format("{}: {}; set TMPDIR to a folder with room for the decompressed file", what,
                                 std::generic_category().message(errno)),
          .file = name};
}

bool WriteAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t wrote = ::write(fd, data, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    data += wrote;
    size -= static_cast<size_t>(wrote);
  }
  return true;
}

}  // namespace

bool StartsSqlite(std::string_view bytes) { return bytes.starts_with("SQLite format 3\0"sv); }

Database::~Database() { sqlite3_close(connection_); }

Status Database::Connect(const std::string& uri, const std::string& name) {
  constexpr int kFlags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  const int code = sqlite3_open_v2(uri.c_str(), &connection_, kFlags, nullptr);
  if (code == SQLITE_OK) return {};
  return Error{.code = ErrorCode::kIo,
               .message = fmt::format("cannot be opened by SQLite: {}; check that it can be read",
                                      connection_ != nullptr ? sqlite3_errmsg(connection_) : "out of memory"),
               .file = name};
}

Status Database::Harden(const std::string& name) {
  for (const auto& [option, value] : {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                      {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                      {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                      {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
                                      {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0}}) {
    if (sqlite3_db_config(connection_, option, value, nullptr) != SQLITE_OK) {
      return Error{
          .code = ErrorCode::kIo, .message = "SQLite refuses a safety setting; update libsqlite3", .file = name};
    }
  }
  sqlite3_limit(connection_, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  sqlite3_limit(connection_, SQLITE_LIMIT_COLUMN, kMaxColumns);
  sqlite3_limit(connection_, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(connection_, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
  sqlite3_limit(connection_, SQLITE_LIMIT_EXPR_DEPTH, 20);
  sqlite3_limit(connection_, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
  // Damage is found when a page is read and not when a cell of it leads astray; sorting needs no file.
  for (const char* pragma : {"PRAGMA cell_size_check=ON", "PRAGMA temp_store=MEMORY", "PRAGMA query_only=ON"}) {
    sqlite3_exec(connection_, pragma, nullptr, nullptr, nullptr);
  }
  return {};
}

Status Database::ReadSchema(const std::string& name) {
  // Virtual tables have no root page.
  constexpr const char* kTables =
      "SELECT name FROM main.sqlite_master WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite!_%' ESCAPE "
      "'!'";
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(connection_, kTables, -1, &statement, nullptr);
  while (code == SQLITE_OK || code == SQLITE_ROW) {
    code = sqlite3_step(statement);
    if (code != SQLITE_ROW) break;
    const void* const text = sqlite3_column_blob(statement, 0);
    if (text == nullptr) continue;
    tables_.push_back(
        {std::string(static_cast<const char*>(text), static_cast<size_t>(sqlite3_column_bytes(statement, 0))), {}});
  }
  sqlite3_finalize(statement);
  if (tables_.empty() && code != SQLITE_DONE) {
    return Error{.code = ErrorCode::kCorruptData,
                 .message = fmt::format("is a damaged SQLite database ({}); copy or export it again",
                                        sqlite3_errmsg(connection_)),
                 .file = name};
  }
  for (Table& table : tables_) {
    // Generated columns (hidden 2 and 3) are expressions of the file's.
    const std::string pragma = fmt::format("PRAGMA main.table_xinfo({})", Quoted(table.name));
    if (sqlite3_prepare_v2(connection_, pragma.c_str(), -1, &statement, nullptr) != SQLITE_OK) continue;
    while (sqlite3_step(statement) == SQLITE_ROW) {
      if (sqlite3_column_int(statement, 6) != 0 || sqlite3_column_text(statement, 1) == nullptr) continue;
      table.columns.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(statement, 1)));
    }
    sqlite3_finalize(statement);
  }
  return {};
}

Result<std::unique_ptr<Database>> Database::Open(const std::string& path) {
  std::unique_ptr<Database> database(new Database());
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) database->size_bytes_ = static_cast<uint64_t>(status.st_size);
  RETURN_IF_ERROR(database->Connect(UriOf(path), path));
  RETURN_IF_ERROR(database->Harden(path));
  RETURN_IF_ERROR(database->ReadSchema(path));
  return database;
}

Result<std::unique_ptr<Database>> Database::Spool(ByteSource& source, const std::string& name) {
  std::unique_ptr<Database> database(new Database());
  std::string bytes;
  std::optional<TemporaryFolder> folder;
  UniqueFd file;
  std::vector<char> window(size_t{1} << 20);
  while (true) {
    auto got = source.Read(window);
    if (!got) {
      // Only what is damaged ends early; a refused or cancelled read is an error of its own.
      if (got.error().code != ErrorCode::kCorruptData || database->size_bytes_ == 0) return std::move(got).error();
      database->cut_ = std::move(got).error();
      break;
    }
    if (*got == 0) break;
    database->size_bytes_ += *got;
    if (!folder && bytes.size() + *got <= kInMemoryBytes) {
      bytes.append(window.data(), *got);
      continue;
    }
    if (!folder) {
      folder.emplace();
      if (folder->made())
        file = UniqueFd(::open(folder->File(kSpooled).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      if (!file.valid() || !WriteAll(file.get(), bytes.data(), bytes.size())) {
        return ErrnoError("cannot be decompressed into a temporary file", name);
      }
      bytes = std::string();
    }
    if (!WriteAll(file.get(), window.data(), *got)) {
      return ErrnoError("cannot be decompressed into a temporary file", name);
    }
  }
  if (folder) {
    // Immutable: SQLite opens the file once, at the first read, and it may be gone from the folder after that.
    RETURN_IF_ERROR(database->Connect(UriOf(folder->File(kSpooled)), name));
  } else {
    RETURN_IF_ERROR(database->Connect(":memory:", name));
    auto* const copy = static_cast<unsigned char*>(sqlite3_malloc64(std::max<size_t>(bytes.size(), 1)));
    if (copy == nullptr) throw std::bad_alloc();
    // A header that asks for a write-ahead log cannot be had in memory; the log is not read anyway.
    std::memcpy(copy, bytes.data(), bytes.size());
    if (bytes.size() > 19) copy[18] = copy[19] = 1;
    const auto size = static_cast<sqlite3_int64>(bytes.size());
    const int code = sqlite3_deserialize(database->connection_, "main", copy, size, size,
                                         SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
    if (code != SQLITE_OK) {
      return Error{
          .code = ErrorCode::kCorruptData, .message = "is not an SQLite database; export it again", .file = name};
    }
  }
  RETURN_IF_ERROR(database->Harden(name));
  RETURN_IF_ERROR(database->ReadSchema(name));
  return database;
}

Result<std::unique_ptr<Database>> Database::Adopt(sqlite3* connection, const std::string& name) {
  std::unique_ptr<Database> database(new Database());
  database->connection_ = connection;
  RETURN_IF_ERROR(database->Harden(name));
  RETURN_IF_ERROR(database->ReadSchema(name));
  sqlite3_stmt* statement = nullptr;
  constexpr const char* kSize = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
  if (sqlite3_prepare_v2(connection, kSize, -1, &statement, nullptr) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW) {
    database->size_bytes_ = static_cast<uint64_t>(sqlite3_column_int64(statement, 0));
  }
  sqlite3_finalize(statement);
  return database;
}

const Database::Table* Database::Find(std::string_view table) const {
  const auto found = std::find_if(tables_.begin(), tables_.end(),
                                  [&](const Table& own) { return EqualIgnoringCase(own.name, table); });
  return found == tables_.end() ? nullptr : &*found;
}

bool Database::Has(std::string_view table) const { return Find(table) != nullptr; }

bool Database::Has(std::string_view table, std::string_view column) const {
  const Table* const found = Find(table);
  return found != nullptr && std::any_of(found->columns.begin(), found->columns.end(),
                                         [&](const std::string& own) { return EqualIgnoringCase(own, column); });
}

bool Database::HasRows(std::string_view table) {
  if (!Has(table)) return false;
  const std::string sql = fmt::format("SELECT 1 FROM main.{} NOT INDEXED LIMIT 1", Quoted(table));
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(connection_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) return false;
  const bool has = sqlite3_step(statement) == SQLITE_ROW;
  sqlite3_finalize(statement);
  return has;
}

std::vector<std::string> Database::TableNames() const {
  std::vector<std::string> names;
  for (const Table& table : tables_) names.push_back(table.name);
  return names;
}

TableScan::TableScan(const Database& database, std::string_view table, std::initializer_list<const char*> columns)
    // A row takes more than two bytes of a file; a damaged tree could lead in circles for ever.
    : connection_(database.connection()), max_rows_(database.size_bytes() / 2 + 1) {
  if (!database.Has(table)) return;
  column_count_ = static_cast<int>(columns.size());
  sql_ = fmt::format("SELECT {}(", kRowFunction);
  for (const char* column : columns) {
    if (sql_.back() != '(') sql_ += ',';
    sql_ += database.Has(table, column) ? Quoted(column) : "NULL";
  }
  sql_ += fmt::format(") FROM main.{} NOT INDEXED", Quoted(table));
}

void TableScan::Step(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  auto* const scan = static_cast<TableScan*>(sqlite3_user_data(context));
  if (scan->row_count_ >= scan->max_rows_) {
    scan->failure_ = "it holds more rows than the file has room for";
    sqlite3_result_error_code(context, SQLITE_ABORT);
    return;
  }
  ++scan->row_count_;
  scan->values_ = values;
  try {
    scan->visit_(scan->called_);
  } catch (...) {
    scan->thrown_ = std::current_exception();
    scan->stopped_ = true;
  }
  if (scan->stopped_) sqlite3_result_error_code(context, SQLITE_ABORT);
}

void TableScan::Run(void (*visit)(void*), void* called) {
  if (sql_.empty()) return;
  visit_ = visit;
  called_ = called;
  // Direct only: nothing in the file's schema may call it.
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_create_function_v2(connection_, kRowFunction, column_count_, kFlags, this, nullptr, Step, Finish,
                                        nullptr);
  if (code == SQLITE_OK) code = sqlite3_prepare_v2(connection_, sql_.c_str(), -1, &statement, nullptr);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  if (code != SQLITE_ROW && code != SQLITE_DONE && !stopped_ && failure_.empty()) {
    failure_ = sqlite3_errmsg(connection_);
  }
  sqlite3_finalize(statement);
  if (thrown_) std::rethrow_exception(thrown_);
}

std::string_view TableScan::Text(int column) const {
  const auto* const text = sqlite3_value_text(values_[column]);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(sqlite3_value_bytes(values_[column]))};
}

}  // namespace lockstep::ingest::nsight
