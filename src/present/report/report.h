#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "analysis/analysis_result.h"
#include "base/result.h"
#include "model/run.h"

namespace lockstep::report {

struct TextOptions {
  int width = 80;  ///< Columns; lines never exceed it.
  bool colour = false;
  bool unicode = true;                ///< Off: bars and marks in ASCII.
  size_t top = 10;                    ///< Rows per table.
  std::vector<std::string> sections;  ///< Of SectionNames(), or "all". Empty: the first screen only.
  std::optional<int32_t> rank = {};   ///< Only this rank's rows in the tables.
  std::optional<int64_t> step = {};   ///< Only this step's rows.
};

/// Sections in the order they are printed: findings, breakdown, steps, idle, kernels, operators, collectives,
/// stragglers, wait_states, imbalance, memory, launch, critical_path, what_if, bubbles, clocks, ledger.
const std::vector<std::string>& SectionNames();

/// The pass that fills a section ("queues" and "idle_host" belong to theirs); empty for findings, clocks and ledger.
std::string PassOfSection(const std::string& section);

/// The first screen (job, ranks, steps, time split with bars, per-rank table worst first, findings by gain, data
/// quality), then the sections asked for.
void WriteText(const model::Run& run, const analysis::AnalysisResult& result, const TextOptions& options,
               std::ostream& out);

/// `lockstep.analyze/1` as docs/json.md describes it; one object, stable order, pretty-printed with two spaces.
void WriteJson(const model::Run& run, const analysis::AnalysisResult& result, bool partial, std::ostream& out);

/// One CSV file per table into `folder` (made if missing): breakdown.csv, steps.csv, idle.csv, ...
/// `tables`: only these of CsvTableNames (all when empty). A pass that did not run has no file.
/// Errors: kIo when the folder or a file cannot be written.
Status WriteCsv(const model::Run& run, const analysis::AnalysisResult& result, const std::string& folder,
                const std::vector<std::string>& tables = {});

/// ranks, breakdown, ..., findings, ledger: the names of the files without ".csv".
std::vector<std::string> CsvTableNames();

/// One of these tables, as its file would hold it.
void PrintCsvTable(const model::Run& run, const analysis::AnalysisResult& result, std::string_view table,
                   std::ostream& out);

}  // namespace lockstep::report
