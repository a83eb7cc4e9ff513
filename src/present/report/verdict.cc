#include "present/report/verdict.h"

#include <algorithm>

namespace lockstep::report {

using analysis::Finding;

std::vector<const Finding*> VerdictFindings(const std::vector<Finding>& findings) {
  const auto matters = [](const Finding& finding) { return finding.severity > analysis::FindingSeverity::kInfo; };
  const auto first = std::find_if(findings.begin(), findings.end(), matters);
  if (first == findings.end()) return {};
  std::vector<const Finding*> verdict = {&*first};
  for (const Finding& finding : findings) {
    const bool is_culprit = finding.id == "straggler" || finding.id == "slow_link";
    if (&finding != &*first && matters(finding) && is_culprit) verdict.push_back(&finding);
  }
  return verdict;
}

}  // namespace lockstep::report
