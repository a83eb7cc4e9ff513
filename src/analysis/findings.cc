#include "analysis/findings.h"

#include <algorithm>
#include <tuple>

#include "analysis/finding_context.h"

namespace lockstep::analysis {

const char* FindingSeverityName(FindingSeverity severity) {
  switch (severity) {
    case FindingSeverity::kInfo: return "info";
    case FindingSeverity::kWarning: return "warning";
    case FindingSeverity::kCritical: return "critical";
  }
  return "info";
}

std::vector<Finding> ComputeFindings(const RunContext& shared, const AnalysisResult& result) {
  std::vector<Finding> findings;
  if (shared.run->ranks.empty()) return findings;
  const FindingContext context(shared, result);
  FindStragglerFindings(context, &findings);
  FindCommunicationFindings(context, &findings);
  FindHostFindings(context, &findings);
  FindBalanceFindings(context, &findings);
  FindParallelismFindings(context, &findings);
  FindCoverageFindings(context, &findings);
  for (Finding& finding : findings) {
    if (finding.gain_ns_per_step && context.step_ns() > 0) {
      finding.gain_ratio = static_cast<double>(*finding.gain_ns_per_step) / static_cast<double>(context.step_ns());
    }
  }
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return std::tuple(b.gain_ns_per_step.value_or(-1), b.severity, std::string_view(a.id)) <
           std::tuple(a.gain_ns_per_step.value_or(-1), a.severity, std::string_view(b.id));
  });
  return findings;
}

}  // namespace lockstep::analysis
