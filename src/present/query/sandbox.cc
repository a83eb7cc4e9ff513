#include "present/query/sandbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "base/letter_case.h"
#include "present/query/functions.h"
#include "present/query/tables.h"

namespace lockstep::query {
namespace {

// SQLite's own functions that a query may call: nothing that touches files, settings or the connection's state.
// load_extension, fts3_tokenizer and whatever a later SQLite may bring are not here, so they are refused.
constexpr std::string_view kAllowedFunctions[] = {"->",
                                                  "->>",
                                                  "abs",
                                                  "acos",
                                                  "acosh",
                                                  "asin",
                                                  "asinh",
                                                  "atan",
                                                  "atan2",
                                                  "atanh",
                                                  "avg",
                                                  "ceil",
                                                  "ceiling",
                                                  "char",
                                                  "coalesce",
                                                  "concat",
                                                  "cos",
                                                  "cosh",
                                                  "count",
                                                  "cume_dist",
                                                  "date",
                                                  "datetime",
                                                  "degrees",
                                                  "dense_rank",
                                                  "exp",
                                                  "first_value",
                                                  "floor",
                                                  "format",
                                                  "glob",
                                                  "group_concat",
                                                  "hex",
                                                  "ifnull",
                                                  "iif",
                                                  "instr",
                                                  "json",
                                                  "json_array",
                                                  "json_array_length",
                                                  "json_extract",
                                                  "json_group_array",
                                                  "json_group_object",
                                                  "json_object",
                                                  "json_quote",
                                                  "json_type",
                                                  "json_valid",
                                                  "julianday",
                                                  "lag",
                                                  "last_value",
                                                  "lead",
                                                  "length",
                                                  "like",
                                                  "likelihood",
                                                  "likely",
                                                  "ln",
                                                  "log",
                                                  "log10",
                                                  "log2",
                                                  "lower",
                                                  "ltrim",
                                                  "max",
                                                  "min",
                                                  "mod",
                                                  "nth_value",
                                                  "ntile",
                                                  "nullif",
                                                  "percent_rank",
                                                  "pi",
                                                  "pow",
                                                  "power",
                                                  "printf",
                                                  "quote",
                                                  "radians",
                                                  "random",
                                                  "rank",
                                                  "replace",
                                                  "round",
                                                  "row_number",
                                                  "rtrim",
                                                  "sign",
                                                  "sin",
                                                  "sinh",
                                                  "sqlite_version",
                                                  "sqrt",
                                                  "strftime",
                                                  "substr",
                                                  "substring",
                                                  "sum",
                                                  "tan",
                                                  "tanh",
                                                  "time",
                                                  "total",
                                                  "trim",
                                                  "trunc",
                                                  "typeof",
                                                  "unicode",
                                                  "unixepoch",
                                                  "unlikely",
                                                  "upper",
                                                  "zeroblob"};

// Table functions of SQLite that only take apart the text they are given.
constexpr std::string_view kAllowedTableFunctions[] = {"json_each", "json_tree"};

template <size_t kCount>
bool IsListed(const std::string_view (&list)[kCount], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

const char* WhatIsRefused(int action) {
  switch (action) {
    case SQLITE_ATTACH:
    case SQLITE_DETACH: return "ATTACH and DETACH";
    case SQLITE_PRAGMA: return "PRAGMA (except table_info)";
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT: return "transactions";
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE: return "INSERT, UPDATE and DELETE";
    case SQLITE_ANALYZE:
    case SQLITE_REINDEX: return "ANALYZE and REINDEX";
    default: return "CREATE, DROP and ALTER";
  }
}

int Refuse(Usage* usage, std::string reason) {
  if (usage->refusal.empty()) usage->refusal = std::move(reason);
  return SQLITE_DENY;
}

int Authorize(void* data, int action, const char* first, const char* second, const char*, const char*) {
  auto* usage = static_cast<Usage*>(data);
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_READ: {
      if (const Table* table = FindTable(first == nullptr ? "" : first)) {
        usage->tables.emplace(table->spec().name);
        return SQLITE_OK;
      }
      // Without a column it is count(*) of a WITH clause, whose name is the query's own.
      if (second == nullptr || second[0] == '\0' || IsListed(kAllowedTableFunctions, Lowered(first))) return SQLITE_OK;
      return Refuse(usage, fmt::format("the table '{}' may not be read", first == nullptr ? "" : first));
    }
    case SQLITE_FUNCTION: {
      const std::string name = Lowered(second);
      if (IsListed(kAllowedFunctions, name) || IsOwnFunction(name)) return SQLITE_OK;
      return Refuse(usage, fmt::format("the function '{}' may not be called", name));
    }
    case SQLITE_PRAGMA:
      // Eponymous tables can be described; nothing can be set.
      if (Lowered(first) == "table_info") return SQLITE_OK;
      [[fallthrough]];
    default:
      return Refuse(
          usage, fmt::format("{} are refused: a query only reads the tables that --list names", WhatIsRefused(action)));
  }
}

int RefuseOpen(sqlite3_vfs*, const char*, sqlite3_file* file, int, int*) {
  file->pMethods = nullptr;
  return SQLITE_CANTOPEN;
}
int RefuseDelete(sqlite3_vfs*, const char*, int) { return SQLITE_IOERR_DELETE; }
int FindNothing(sqlite3_vfs*, const char*, int, int* found) {
  *found = 0;
  return SQLITE_OK;
}
int RefusePath(sqlite3_vfs*, const char*, int, char*) { return SQLITE_CANTOPEN; }
void* LoadNothing(sqlite3_vfs*, const char*) { return nullptr; }
void SayNothing(sqlite3_vfs*, int size, char* text) {
  if (size > 0) text[0] = '\0';
}
void (*NoSymbol(sqlite3_vfs*, void*, const char*))(void) { return nullptr; }
void CloseNothing(sqlite3_vfs*, void*) {}
int Randomness(sqlite3_vfs* vfs, int size, char* bytes) {
  auto* real = static_cast<sqlite3_vfs*>(vfs->pAppData);
  return real->xRandomness(real, size, bytes);
}
int Sleep(sqlite3_vfs*, int) { return 0; }
int CurrentTime(sqlite3_vfs* vfs, double* days) {
  auto* real = static_cast<sqlite3_vfs*>(vfs->pAppData);
  return real->xCurrentTime(real, days);
}
int LastError(sqlite3_vfs*, int, char*) { return 0; }

bool RegisterNoFiles() {
  static sqlite3_vfs vfs;
  std::memset(&vfs, 0, sizeof(vfs));
  sqlite3_vfs* real = sqlite3_vfs_find(nullptr);
  if (real == nullptr) return false;
  vfs.iVersion = 1;
  vfs.szOsFile = static_cast<int>(sizeof(sqlite3_file));
  vfs.mxPathname = 64;
  vfs.zName = "lockstep_no_files";
  vfs.pAppData = real;
  vfs.xOpen = RefuseOpen;
  vfs.xDelete = RefuseDelete;
  vfs.xAccess = FindNothing;
  vfs.xFullPathname = RefusePath;
  vfs.xDlOpen = LoadNothing;
  vfs.xDlError = SayNothing;
  vfs.xDlSym = NoSymbol;
  vfs.xDlClose = CloseNothing;
  vfs.xRandomness = Randomness;
  vfs.xSleep = Sleep;
  vfs.xCurrentTime = CurrentTime;
  vfs.xGetLastError = LastError;
  return sqlite3_vfs_register(&vfs, 0) == SQLITE_OK;
}

struct Limit {
  int id;
  int value;
};

// Far above what a person writes, far below what hurts. A single call of a function can not be interrupted: with texts
// of 1 MiB the slowest, instr() and replace() of one in another, take seconds, with 16 MiB they would take hours.
constexpr Limit kLimits[] = {
    {SQLITE_LIMIT_LENGTH, 1 << 20},    {SQLITE_LIMIT_SQL_LENGTH, 256 << 10}, {SQLITE_LIMIT_COLUMN, 256},
    {SQLITE_LIMIT_EXPR_DEPTH, 200},    {SQLITE_LIMIT_COMPOUND_SELECT, 50},   {SQLITE_LIMIT_VDBE_OP, 50000},
    {SQLITE_LIMIT_FUNCTION_ARG, 64},   {SQLITE_LIMIT_ATTACHED, 0},           {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
    {SQLITE_LIMIT_VARIABLE_NUMBER, 0}, {SQLITE_LIMIT_TRIGGER_DEPTH, 1},      {SQLITE_LIMIT_WORKER_THREADS, 0},
};

}  // namespace

const char* NoFilesName() {
  static const bool registered = RegisterNoFiles();
  return registered ? "lockstep_no_files" : nullptr;
}

int LockDown(sqlite3* connection, Usage* usage) {
  // Sorting and WITH tables in memory. The authorizer refuses PRAGMA from here on.
  int code = sqlite3_exec(connection, "PRAGMA temp_store = MEMORY", nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return code;
  // A table is declared to SQLite when a statement first names it, and declaring looks like CREATE TABLE to the
  // authorizer. So all of them are named once before there is one.
  std::vector<std::string> names = TableNames();
  names.insert(names.end(), std::begin(kAllowedTableFunctions), std::end(kAllowedTableFunctions));
  for (const std::string& name : names) {
    sqlite3_stmt* statement = nullptr;
    code = sqlite3_prepare_v2(connection, fmt::format("SELECT * FROM {}", name).c_str(), -1, &statement, nullptr);
    sqlite3_finalize(statement);
    if (code != SQLITE_OK) return code;
  }
  for (const Limit& limit : kLimits) sqlite3_limit(connection, limit.id, limit.value);
  constexpr std::pair<int, int> kSettings[] = {
      {SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0}, {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
      {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
      {SQLITE_DBCONFIG_DQS_DML, 0},        {SQLITE_DBCONFIG_DQS_DDL, 0}};
  for (const auto& [setting, value] : kSettings) {
    code = sqlite3_db_config(connection, setting, value, nullptr);
    if (code != SQLITE_OK) return code;
  }
  return sqlite3_set_authorizer(connection, Authorize, usage);
}

}  // namespace lockstep::query
