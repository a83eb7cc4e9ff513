#include "analysis/analyze.h"
#include "analysis/finding.h"

namespace lockstep::analysis {

const char* FindingSeverityName(FindingSeverity severity) {
  switch (severity) {
    case FindingSeverity::kInfo: return "info";
    case FindingSeverity::kWarning: return "warning";
    case FindingSeverity::kCritical: return "critical";
  }
  return "info";
}

std::vector<Finding> ComputeFindings(const RunContext&, const AnalysisResult&) { return {}; }

}  // namespace lockstep::analysis
