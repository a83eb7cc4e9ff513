#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include "cli/console.h"
#include "query/database.h"
#include "query/row_writer.h"

namespace lockstep::cli {

/// How answers are written.
struct QueryFormat {
  std::string name = "table";  ///< table, csv, json, ndjson.
  query::TableStyle style;
};

std::unique_ptr<query::RowWriter> MakeRowWriter(const QueryFormat& format, bool partial, std::ostream& out);

/// What is wrong, the nearest name, the place in the SQL, and where to look: some lines on standard error.
void WriteQueryError(const query::QueryError& error, std::string_view sql, Console& console);

/// kMisused for what the asker can mend in the SQL, else kFailed.
int ExitStatusOf(const query::QueryError& error);

}  // namespace lockstep::cli
