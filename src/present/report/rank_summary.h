#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/breakdown.h"
#include "model/run.h"
#include "present/report/report.h"

namespace lockstep::report {

/// What the first screen's durations are.
enum class Scope : uint8_t {
  kWindow,    ///< The whole trace.
  kStepMean,  ///< Mean over the rank's steps.
  kOneStep,   ///< The step asked for.
};

/// One line of the first screen's rank table: rows of the tables, or sums and means over rows.
struct RankSummary {
  size_t rank_index = 0;
  analysis::Basis basis = analysis::Basis::kNone;  ///< kNone: the durations below mean nothing.
  double span_ns = 0;
  double compute_ns = 0;
  double exposed_communication_ns = 0;
  double exposed_memory_ns = 0;
  double idle_ns = 0;
  double communication_ns = 0;
  double overlapped_communication_ns = 0;
  std::optional<double> wait_ns = {};  ///< Absent for one step: waiting is not kept by step.
  std::optional<double> wait_given_ns = {};
};

struct Summary {
  Scope scope = Scope::kWindow;
  bool by_wait_given = false;           ///< The order: waiting given to others, else span.
  std::vector<RankSummary> ranks = {};  ///< Worst first; ranks and steps that were not asked for are left out.
  RankSummary mean = {};                ///< Over the ranks with a basis; kNone when there is none.
  size_t known_count = 0;               ///< Ranks with a basis.
};

Summary Summarise(const model::Run& run, const analysis::AnalysisResult& result, const TextOptions& options);

}  // namespace lockstep::report
