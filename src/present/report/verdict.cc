#include "present/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "present/report/format.h"

namespace lockstep::report {

using analysis::Finding;

std::vector<const Finding*> VerdictFindings(const std::vector<Finding>& findings) {
  const auto matters = [](const Finding& finding) { return finding.severity > analysis::FindingSeverity::kInfo; };
  const auto first = std::find_if(findings.begin(), findings.end(), matters);
  if (first == findings.end()) return {};
  std::vector<const Finding*> verdict = {&*first};
  for (const Finding& finding : findings) {
    const bool is_culprit = finding.id == "straggler" || finding.id == "slow_link";
    const bool is_small = finding.gain_ratio.value_or(1) < kLeastHeadlineGain;
    if (&finding != &*first && matters(finding) && is_culprit && !is_small) verdict.push_back(&finding);
  }
  return verdict;
}

std::string GainWords(const Finding& finding, bool has_steps) {
  if (!finding.gain_ns_per_step || *finding.gain_ns_per_step <= 0) return "";
  std::string text = fmt::format("saves up to {} {}", FormatDuration(*finding.gain_ns_per_step),
                                 has_steps ? "a step" : "in this window");
  if (finding.gain_ratio) text += fmt::format(" ({})", FormatPercent(*finding.gain_ratio));
  return text;
}

std::string HeadlineGain(const Finding& finding, bool has_steps) {
  if (!finding.gain_ns_per_step || *finding.gain_ns_per_step <= 0) return "";
  if (finding.gain_ratio) {
    return fmt::format("costs up to {} of {}", FormatPercent(*finding.gain_ratio),
                       has_steps ? "a step" : "this window");
  }
  return fmt::format("costs up to {} {}", FormatDuration(*finding.gain_ns_per_step),
                     has_steps ? "a step" : "in this window");
}

}  // namespace lockstep::report
