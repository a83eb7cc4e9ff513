#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>

#include "present/query/table.h"

namespace lockstep::query {

/// Makes `table` known to the connection as a read-only table of its name. `*source` is read when a scan begins and may
/// change or be null until then; all of them must outlive the connection. Exceptions stop here: an allocation that
/// fails is SQLITE_NOMEM, a set `stop` flag SQLITE_INTERRUPT.
/// Returns an SQLite result code.
int RegisterTable(sqlite3* connection, const Table* table, const Source* const* source);

/// "CREATE TABLE x(rank INTEGER, ...)": what SQLite is told of a table.
std::string DeclarationOf(const TableSpec& spec);

}  // namespace lockstep::query
