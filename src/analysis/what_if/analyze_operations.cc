#include "analysis/what_if/analyze_operations.h"

#include <algorithm>
#include <utility>

#include "analysis/pass.h"
#include "analysis/pass_registry.h"
#include "analysis/what_if/pipeline_bubbles.h"
#include "analysis/what_if/straggler_study.h"
#include "base/cpu_clock.h"

namespace lockstep::analysis {
namespace {

bool Wanted(const std::vector<const Pass*>& passes, const std::vector<std::string>& only, std::string_view name) {
  return only.empty() || std::find(passes.begin(), passes.end(), FindPass(name)) != passes.end();
}

void Simulate(model::Run* run, double speedup, AnalysisResult* result) {
  Result<WhatIf> what_if = SimulateOperations(*run->operations, &run->ledger, speedup);
  if (what_if) {
    result->Edit<WhatIf>() = *std::move(what_if);
    return;
  }
  const bool impossible = what_if.error().code == ErrorCode::kFailedPrecondition;
  model::LedgerEntry entry;
  entry.code = "what_if_not_possible";
  entry.severity = impossible ? model::Severity::kInfo : model::Severity::kError;
  entry.message = "what-if: " + what_if.error().message;
  entry.advice = "the other tables are not affected";
  run->ledger.Add(std::move(entry));
}

/// Steps of an operation trace may each count from their own begin, so their lengths are added.
void MeasureSteps(const model::OperationTrace& trace, AnalysisResult* result) {
  const auto& operations = trace.operations;
  for (size_t begin = 0; begin < operations.size();) {
    int64_t first_ns = INT64_MAX;
    int64_t last_ns = INT64_MIN;
    size_t end = begin;
    for (; end < operations.size() && operations[end].step == operations[begin].step; ++end) {
      first_ns = std::min(first_ns, operations[end].start_ns);
      last_ns = std::max(last_ns, operations[end].start_ns + operations[end].duration_ns);
    }
    if (__builtin_add_overflow(result->job_span_ns, last_ns - first_ns, &result->job_span_ns)) {
      result->job_span_ns = INT64_MAX;
    }
    ++result->step_count;
    begin = end;
  }
}

}  // namespace

Result<AnalysisResult> AnalyzeOperations(model::Run* run, const AnalysisOptions& options,
                                         const std::vector<std::string>& only) {
  ASSIGN_OR_RETURN(const std::vector<const Pass*> passes, ResolvePasses(only));
  AnalysisResult result;
  MeasureSteps(*run->operations, &result);
  if (Wanted(passes, only, "what_if")) {
    const int64_t begin_ns = ThreadCpuNs();
    Simulate(run, options.what_if_speedup, &result);
    result.timings.push_back({"what_if", ThreadCpuNs() - begin_ns});
  }
  if (Wanted(passes, only, "bubbles")) {
    const int64_t begin_ns = ThreadCpuNs();
    result.Edit<Bubbles>() = ComputeBubbles(*run->operations);
    result.timings.push_back({"bubbles", ThreadCpuNs() - begin_ns});
  }
  result.findings = FindOperationFindings(*run->operations, result);
  return result;
}

}  // namespace lockstep::analysis
