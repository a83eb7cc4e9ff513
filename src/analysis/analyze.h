#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "analysis/critical_path/critical_path.h"
#include "analysis/critical_path/range_path.h"
#include "analysis/finding.h"
#include "analysis/idle.h"
#include "analysis/imbalance.h"
#include "analysis/kernels.h"
#include "analysis/launch.h"
#include "analysis/memory.h"
#include "analysis/operators.h"
#include "analysis/stragglers.h"
#include "analysis/wait_states/wait_states.h"
#include "analysis/what_if/pipeline_bubbles.h"
#include "analysis/what_if/what_if.h"
#include "base/result.h"
#include "model/run.h"

namespace lockstep::analysis {

struct Parallelism;  // analysis/parallelism/parallelism.h

/// How long a pass took, all threads added.
struct PassTiming {
  std::string name;
  int64_t cpu_ns = 0;
};

/// Every pass's table. Tables of passes that were not asked for are empty and not in `computed`.
struct AnalysisResult {
  std::vector<std::string> computed;  ///< Pass names, in registry order.
  Breakdown breakdown;
  std::vector<IdleRow> idle;
  std::vector<IdleHostRow> idle_host;
  std::vector<KernelRow> kernels;
  std::vector<OperatorRow> operators;
  Collectives collectives;
  Stragglers stragglers;
  WaitStates wait_states;
  Imbalance imbalance;
  std::vector<MemoryRow> memory;
  std::vector<LaunchRow> launch;
  std::vector<QueueRow> queues;
  CriticalPath critical_path;
  std::vector<RangePath> range_paths;  ///< Where AnalysisOptions::critical_path_range asks for them; by rank index.
  /// Tables of the passes that know how the job is divided; null when none of them ran. Shared, so that results can be
  /// copied and this header needs no more than its name.
  std::shared_ptr<const Parallelism> parallelism;
  WhatIf what_if;
  Bubbles bubbles;                ///< Of operation traces.
  std::vector<Finding> findings;  ///< Largest gain first, then severity, then id.
  int64_t step_count = 0;         ///< Most steps any rank has; 0 = no steps in the files.
  int64_t job_span_ns = 0;        ///< First start to last end over all ranks, aligned clock (first window).
  std::vector<PassTiming> timings;

  bool Has(std::string_view pass) const;
};

/// A pass of the registry.
struct PassInfo {
  std::string_view name;                ///< "breakdown".
  std::string_view question;            ///< One line: what it answers.
  std::vector<std::string_view> needs;  ///< Passes whose result it reads.
  bool on_request = false;              ///< Runs only when named, or asked for by an option of its own.
};

/// In the order they run (pass_registry.cc).
const std::vector<PassInfo>& Passes();

/// Runs passes (`only` empty = all; their needs come along) and the clock alignment, which fills run->ranks[i].clock
/// and adds to run->ledger. Ranks are worked on in parallel; the result does not depend on the number of threads.
/// Errors: kInvalidArgument for an unknown pass name (the message has the nearest one).
Result<AnalysisResult> Analyze(model::Run* run, const AnalysisOptions& options, const std::vector<std::string>& only);

/// Findings from the tables, for Analyze; thresholds in AnalysisOptions. Source: docs/metrics.md#findings.
std::vector<Finding> ComputeFindings(const RunContext& shared, const AnalysisResult& result);

}  // namespace lockstep::analysis
