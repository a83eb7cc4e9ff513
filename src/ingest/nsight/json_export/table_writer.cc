#include "ingest/nsight/json_export/table_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/letter_case.h"

namespace lockstep::ingest::nsight {
namespace {

constexpr size_t kMaxTables = 512;
constexpr size_t kMaxTableColumns = 200;
constexpr size_t kMaxColumnNameBytes = 64;
constexpr int kCacheKiB = 64 << 10;

/// A name that can stand in a statement between quotation marks and is none of SQLite's own.
bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxColumnNameBytes && !name.starts_with("sqlite") &&
         std::all_of(name.begin(), name.end(), [](char c) { return IsAlphanumeric(c) || c == '_'; });
}

/// Stacks are most of many exports and not read: one row says that there are some.
bool IsSampled(std::string_view table) { return table.ends_with("CALLCHAINS"); }

}  // namespace

Result<std::unique_ptr<TableWriter>> TableWriter::Create(const std::string& display_name) {
  std::unique_ptr<TableWriter> writer(new TableWriter(display_name));
  // Without a name: a temporary database, which goes to a file in TMPDIR only when it outgrows its cache.
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  if (sqlite3_open_v2("", &writer->connection_, kFlags, nullptr) != SQLITE_OK) return writer->WriteError();
  RETURN_IF_ERROR(writer->Execute(fmt::format("PRAGMA cache_size=-{}", kCacheKiB)));
  RETURN_IF_ERROR(writer->Execute("PRAGMA synchronous=OFF"));
  RETURN_IF_ERROR(writer->Execute("PRAGMA journal_mode=OFF"));
  RETURN_IF_ERROR(writer->Execute("BEGIN"));
  return writer;
}

TableWriter::~TableWriter() {
  for (auto& [key, table] : tables_) sqlite3_finalize(table.insert);
  sqlite3_close(connection_);
}

Error TableWriter::WriteError() const {
  return {
      .code = ErrorCode::kIo,
      .message = fmt::format("its rows cannot be held in a temporary database: {}; set TMPDIR to a folder with room",
                             connection_ != nullptr ? sqlite3_errmsg(connection_) : "out of memory"),
      .file = display_name_};
}

Status TableWriter::Execute(const std::string& sql) {
  if (sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return WriteError();
  return {};
}

/// The table with all columns of `cells`; null where its name or one of theirs is none, or there are too many.
Result<TableWriter::Table*> TableWriter::TableOf(std::string_view name, const std::vector<Cell>& cells) {
  key_ = Lowered(name);
  const auto found = tables_.find(key_);
  Table* table = found == tables_.end() ? nullptr : &found->second;
  if (table == nullptr && (!IsName(key_) || tables_.size() == kMaxTables || cells.empty())) return nullptr;
  std::vector<std::string> wanted;
  std::string lower;
  for (const auto& [column, value] : cells) {
    lower = Lowered(column);
    if (table != nullptr && table->columns.contains(lower)) continue;
    const size_t known = table == nullptr ? 0 : table->columns.size();
    if (!IsName(lower) || known + wanted.size() >= kMaxTableColumns) return nullptr;
    if (std::find(wanted.begin(), wanted.end(), lower) == wanted.end()) wanted.push_back(lower);
  }
  if (table != nullptr && wanted.empty()) return table;
  if (table == nullptr) {
    table = &tables_[key_];
    table->name = std::string(name);
    std::string columns;
    for (const std::string& column : wanted) columns += fmt::format("{}\"{}\"", columns.empty() ? "" : ", ", column);
    RETURN_IF_ERROR(Execute(fmt::format("CREATE TABLE \"{}\" ({})", name, columns)));
  } else {
    sqlite3_finalize(std::exchange(table->insert, nullptr));
    for (const std::string& column : wanted) {
      RETURN_IF_ERROR(Execute(fmt::format("ALTER TABLE \"{}\" ADD COLUMN \"{}\"", table->name, column)));
    }
  }
  for (std::string& column : wanted) {
    const int number = static_cast<int>(table->columns.size()) + 1;
    table->columns.emplace(std::move(column), number);
  }
  std::string places;
  for (size_t i = 0; i < table->columns.size(); ++i) places += i == 0 ? "?" : ",?";
  const std::string insert = fmt::format("INSERT INTO \"{}\" VALUES ({})", table->name, places);
  if (sqlite3_prepare_v3(connection_, insert.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &table->insert, nullptr) !=
      SQLITE_OK) {
    return WriteError();
  }
  return table;
}

Result<bool> TableWriter::Add(std::string_view name, const std::vector<Cell>& cells) {
  ASSIGN_OR_RETURN(Table* const table, TableOf(name, cells));
  if (table == nullptr) return false;
  if (table->is_rest_left_out) return true;
  table->is_rest_left_out = IsSampled(table->name);
  sqlite3_clear_bindings(table->insert);
  for (const auto& [column, value] : cells) {
    key_ = Lowered(column);
    const int place = table->columns.find(key_)->second;
    if (const auto* const number = std::get_if<int64_t>(&value)) {
      sqlite3_bind_int64(table->insert, place, *number);
    } else if (const auto* const real = std::get_if<double>(&value)) {
      sqlite3_bind_double(table->insert, place, *real);
    } else if (const auto* const text = std::get_if<std::string_view>(&value)) {
      sqlite3_bind_text64(table->insert, place, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8);
    }
  }
  const int code = sqlite3_step(table->insert);
  sqlite3_reset(table->insert);
  if (code == SQLITE_TOOBIG) return false;
  if (code != SQLITE_DONE) return WriteError();
  return true;
}

Result<std::unique_ptr<Database>> TableWriter::Finish() {
  for (auto& [key, table] : tables_) sqlite3_finalize(std::exchange(table.insert, nullptr));
  RETURN_IF_ERROR(Execute("COMMIT"));
  return Database::Adopt(std::exchange(connection_, nullptr), display_name_);
}

}  // namespace lockstep::ingest::nsight
