#pragma once

#include <string>

#include "base/result.h"
#include "present/report/flat_table.h"

namespace lockstep::report {

/// Writes FOLDER/<table name>.csv (RFC 4180), whole or not at all. The folder must be there. Errors: kIo.
Status WriteCsvTable(const std::string& folder, const FlatTable& table);

}  // namespace lockstep::report
