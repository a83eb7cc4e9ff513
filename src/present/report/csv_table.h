#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "present/report/flat_table.h"

namespace lockstep::report {

/// A text as a field of RFC 4180: quotes around what holds a comma, a quote or a line break; quotes are doubled; valid
/// UTF-8. Lines end in CR LF.
std::string CsvQuoted(std::string_view text);

/// Writes FOLDER/<table name>.csv (RFC 4180), whole or not at all. The folder must be there. Errors: kIo.
Status WriteCsvTable(const std::string& folder, const FlatTable& table);

}  // namespace lockstep::report
