#pragma once

#include <ostream>
#include <string>

#include "analysis/comparison/compare.h"
#include "present/report/json_stream.h"
#include "present/report/report.h"

namespace lockstep::report {

/// Verdict first; then the step and its parts, ranks, kernels, operators, collectives, memory and findings, what
/// changed most first. `options.top` rows a table; at most 50 lines with 4.
void WriteComparisonText(const comparison::Comparison& comparison, const TextOptions& options, std::ostream& out);

/// `lockstep.compare/1` as docs/json.md describes it.
void WriteComparisonJson(const comparison::Comparison& comparison, bool partial, std::ostream& out);
/// Its `data` alone, for the page.
std::string ComparisonDataJson(const comparison::Comparison& comparison);

/// steps.csv, parts.csv, ranks.csv, names.csv, collectives.csv and memory.csv into `folder` (made if missing).
Status WriteComparisonCsv(const comparison::Comparison& comparison, const std::string& folder);

/// The member `key`: docs/json.md#lockstepcompare1 says what a delta is.
void WriteDelta(JsonRow& row, const char* key, const comparison::Delta& delta, bool has_a = true, bool has_b = true);

/// Members of a verdict: from `change` to `minimum_effect`.
void WriteVerdict(JsonRow& row, const comparison::Verdict& verdict, const comparison::CompareOptions& options);

/// The ledgers of several runs as one array, each row with its run's label in front of the source.
void WriteLedgerRows(JsonDocument& json, const std::string& label, const std::vector<model::LedgerEntry>& entries);

}  // namespace lockstep::report
