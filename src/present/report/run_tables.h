#pragma once

#include <cstdint>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/table.h"

namespace lockstep::report {

// The tables that no pass declares: what a run itself has, and the collectives, whose rows differ by form. They are
// declared as those of passes are (analysis/table.h), and stand beside them in JSON, CSV, SQL and Python.

/// `ranks`: a row for each trace. In JSON alone with the object `clock`.
const analysis::Table& RankTable();
/// What that object says, as a table: Python's `clocks`.
const analysis::Table& ClockTable();
/// `ledger`; WriteLedger (json_stream.h) is its JSON.
const analysis::Table& LedgerTable();
/// A member of a collective instance.
struct MemberPlace {
  uint32_t instance = 0;  ///< Into Collectives::instances.
  uint32_t member = 0;    ///< Into CollectiveInstance::members.
};
/// Every member of every instance, in the instances' order.
std::vector<MemberPlace> MemberPlaces(const analysis::AnalysisResult& result);
/// `collectives` of CSV and SQL, Python's `collective_members`: rows are MemberPlaces.
const analysis::Table& MemberTable();
/// `collective_instances` of SQL.
const analysis::Table& InstanceTable();

}  // namespace lockstep::report
