#pragma once

#include <ostream>

#include "present/query/column_spec.h"
#include "present/query/row_writer.h"

namespace lockstep::query {

/// Each table with its sentence, then each function of ours with its own.
void WriteTableList(std::ostream& out, int width);
/// Columns of a table: type, unit, meaning, what NULL means.
void WriteTableDescription(const TableSpec& spec, int width, std::ostream& out);
/// The tables and functions as docs/query.md has them, between its markers.
void WriteReference(std::ostream& out);

}  // namespace lockstep::query
