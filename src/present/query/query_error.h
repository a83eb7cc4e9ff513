#pragma once

#include <string>
#include <string_view>

#include "present/query/database.h"

namespace lockstep::query {

/// Where SQLite's message says that there is no such table, column or function, puts that name and the names there are
/// into `error`: of columns, those of the tables that the SQL mentions.
void NameTheUnknown(std::string_view sql, QueryError* error);

/// The line of the SQL that holds the byte, and under it a line with a '^' below that byte; no line breaks at the end.
/// Long lines are cut around it. Control characters are shown as blanks.
std::string MarkedLine(std::string_view sql, size_t offset);

}  // namespace lockstep::query
