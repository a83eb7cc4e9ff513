#include "present/query/virtual_table.h"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <new>
#include <vector>

namespace lockstep::query {
namespace {

struct Registration {
  const Table* table;
  const Source* const* source;
};

struct VirtualTable : sqlite3_vtab {
  const Registration* registration;
};

struct VirtualCursor : sqlite3_vtab_cursor {
  std::unique_ptr<Cursor> cursor;
  const Source* source;
};

// Nothing thrown may pass through SQLite's C frames.
template <typename Body>
int Guarded(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  } catch (const std::exception&) {
    return SQLITE_ERROR;
  }
}

int Connect(sqlite3* connection, void* data, int, const char* const*, sqlite3_vtab** made, char**) {
  return Guarded([&] {
    const auto* registration = static_cast<const Registration*>(data);
    const int code = sqlite3_declare_vtab(connection, DeclarationOf(registration->table->spec()).c_str());
    if (code != SQLITE_OK) return code;
    sqlite3_vtab_config(connection, SQLITE_VTAB_INNOCUOUS);
    auto table = std::make_unique<VirtualTable>();
    std::memset(static_cast<sqlite3_vtab*>(table.get()), 0, sizeof(sqlite3_vtab));
    table->registration = registration;
    *made = table.release();
    return SQLITE_OK;
  });
}

int Disconnect(sqlite3_vtab* base) {
  delete static_cast<VirtualTable*>(base);
  return SQLITE_OK;
}

bool IsComparison(unsigned char op) {
  return op == SQLITE_INDEX_CONSTRAINT_EQ || op == SQLITE_INDEX_CONSTRAINT_GT || op == SQLITE_INDEX_CONSTRAINT_GE ||
         op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE;
}

// The plan that reaches Filter is text: "column,op;" for each value it is handed, in order.
int BestIndex(sqlite3_vtab* base, sqlite3_index_info* info) {
  return Guarded([&] {
    const Registration& registration = *static_cast<VirtualTable*>(base)->registration;
    std::vector<Constraint> used;
    std::string plan;
    for (int i = 0; i < info->nConstraint; ++i) {
      const auto& candidate = info->aConstraint[i];
      if (candidate.usable == 0 || candidate.iColumn < 0 || !IsComparison(candidate.op)) continue;
      const Constraint constraint{candidate.iColumn, candidate.op};
      if (!registration.table->CanUse(constraint)) continue;
      const char* collation = sqlite3_vtab_collation(info, i);
      if (collation != nullptr && sqlite3_stricmp(collation, "BINARY") != 0) continue;
      used.push_back(constraint);
      info->aConstraintUsage[i].argvIndex = static_cast<int>(used.size());
      plan += fmt::format("{},{};", constraint.column, static_cast<int>(constraint.op));
    }
    const Estimate estimate = registration.table->EstimateOf(*registration.source, used);
    info->estimatedCost = estimate.cost + 1;
    info->estimatedRows = static_cast<sqlite3_int64>(estimate.rows) + 1;
    info->orderByConsumed = info->nOrderBy == 1 && info->aOrderBy[0].desc == 0 && info->aOrderBy[0].iColumn >= 0 &&
                                    registration.table->IsSorted(*registration.source, used, info->aOrderBy[0].iColumn)
                                ? 1
                                : 0;
    info->idxStr = sqlite3_mprintf("%s", plan.c_str());
    info->needToFreeIdxStr = 1;
    return info->idxStr == nullptr ? SQLITE_NOMEM : SQLITE_OK;
  });
}

int Open(sqlite3_vtab* base, sqlite3_vtab_cursor** made) {
  return Guarded([&] {
    const Registration& registration = *static_cast<VirtualTable*>(base)->registration;
    if (*registration.source == nullptr) return SQLITE_MISUSE;  // only looked at, never run, without traces
    auto cursor = std::make_unique<VirtualCursor>();
    std::memset(static_cast<sqlite3_vtab_cursor*>(cursor.get()), 0, sizeof(sqlite3_vtab_cursor));
    cursor->source = *registration.source;
    cursor->cursor = registration.table->Open(*cursor->source);
    *made = cursor.release();
    return SQLITE_OK;
  });
}

int Close(sqlite3_vtab_cursor* base) {
  delete static_cast<VirtualCursor*>(base);
  return SQLITE_OK;
}

int Filter(sqlite3_vtab_cursor* base, int, const char* plan, int value_count, sqlite3_value** values) {
  return Guarded([&] {
    auto* cursor = static_cast<VirtualCursor*>(base);
    std::vector<BoundConstraint> constraints;
    for (int i = 0; i < value_count; ++i) {
      char* end = nullptr;
      const long column = std::strtol(plan, &end, 10);
      const long op = std::strtol(end + 1, &end, 10);
      plan = end + 1;
      constraints.push_back({{static_cast<int>(column), static_cast<unsigned char>(op)}, values[i]});
    }
    cursor->cursor->Filter(constraints);
    return cursor->source->stop().is_set() ? SQLITE_INTERRUPT : SQLITE_OK;
  });
}

int Next(sqlite3_vtab_cursor* base) {
  auto* cursor = static_cast<VirtualCursor*>(base);
  cursor->cursor->Next();
  return cursor->source->stop().is_set() ? SQLITE_INTERRUPT : SQLITE_OK;
}

int Eof(sqlite3_vtab_cursor* base) { return static_cast<VirtualCursor*>(base)->cursor->done() ? 1 : 0; }

int Column(sqlite3_vtab_cursor* base, sqlite3_context* context, int column) {
  return Guarded([&] {
    CellOut out(context);
    static_cast<VirtualCursor*>(base)->cursor->Column(column, out);
    return SQLITE_OK;
  });
}

int RowId(sqlite3_vtab_cursor* base, sqlite3_int64* id) {
  *id = static_cast<VirtualCursor*>(base)->cursor->row_id();
  return SQLITE_OK;
}

// No xCreate: the tables are there by themselves and cannot be made. No xUpdate: they are read-only.
sqlite3_module MakeModule() {
  sqlite3_module module;
  std::memset(&module, 0, sizeof(module));
  module.iVersion = 0;
  module.xConnect = Connect;
  module.xDisconnect = Disconnect;
  module.xBestIndex = BestIndex;
  module.xOpen = Open;
  module.xClose = Close;
  module.xFilter = Filter;
  module.xNext = Next;
  module.xEof = Eof;
  module.xColumn = Column;
  module.xRowid = RowId;
  return module;
}

}  // namespace

std::string DeclarationOf(const TableSpec& spec) {
  std::string text = "CREATE TABLE x(";
  for (size_t i = 0; i < spec.columns.size(); ++i) {
    text += fmt::format("{}\"{}\" {}", i == 0 ? "" : ", ", spec.columns[i].name, SqlTypeName(spec.columns[i].type));
  }
  return text + ")";
}

int RegisterTable(sqlite3* connection, const Table* table, const Source* const* source) {
  static const sqlite3_module module = MakeModule();
  auto* registration = new Registration{table, source};
  return sqlite3_create_module_v2(connection, std::string(table->spec().name).c_str(), &module, registration,
                                  [](void* data) { delete static_cast<Registration*>(data); });
}

}  // namespace lockstep::query
