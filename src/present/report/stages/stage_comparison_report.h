#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "analysis/stage_comparison/stage_comparison.h"
#include "present/report/report.h"

namespace lockstep::report {

/// A quantity of a whole run, beside its windows: "mean step", "memory of a process".
struct WholeRunRow {
  const char* name = nullptr;
  std::string a = {};  ///< As people read it.
  std::string b = {};
  std::string change = {};
};
/// What was measured in either run.
std::vector<WholeRunRow> WholeRunRows(const stage_comparison::StageComparison& comparison);

/// The verdict and the gate, if there is one; the step and its stages; whole runs; what each run's own verdict is.
void WriteStageComparisonText(const stage_comparison::StageComparison& comparison,
                              const std::optional<stage_comparison::Gate>& gate, const TextOptions& options,
                              std::ostream& out);

/// One object, "lockstep.stage_comparison/1" (docs/json.md).
void WriteStageComparisonJson(const stage_comparison::StageComparison& comparison,
                              const std::optional<stage_comparison::Gate>& gate, std::ostream& out);
/// Its member "data".
std::string StageComparisonDataJson(const stage_comparison::StageComparison& comparison,
                                    const std::optional<stage_comparison::Gate>& gate);

}  // namespace lockstep::report
