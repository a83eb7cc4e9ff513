#include "report/verdict.h"

#include <algorithm>

namespace lockstep::report {

using analysis::Finding;

std::vector<const Finding*> VerdictFindings(const std::vector<Finding>& findings) {
  const auto matters = [](const Finding& finding) { return finding.severity > analysis::FindingSeverity::kInfo; };
  const auto first = std::find_if(findings.begin(), findings.end(), matters);
  if (first == findings.end()) return {};
  std::vector<const Finding*> verdict = {&*first};
  const auto late = std::find_if(findings.begin(), findings.end(),
                                 [&](const Finding& finding) { return matters(finding) && finding.id == "straggler"; });
  if (late != findings.end() && late != first) verdict.push_back(&*late);
  return verdict;
}

}  // namespace lockstep::report
