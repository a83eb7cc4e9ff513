#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "analysis/finding.h"
#include "analysis/finding_context.h"
#include "analysis/what_if/job_levers.h"
#include "analysis/what_if/what_if.h"

namespace lockstep::analysis {
namespace {

// If a simulation misses the observed step by more than this, its gains are not reliable.
constexpr double kMaxError = 0.10;

const Lever* FindLever(const WhatIf& what_if, std::string_view id) {
  const auto found =
      std::find_if(what_if.levers.begin(), what_if.levers.end(), [&](const Lever& lever) { return lever.id == id; });
  return found == what_if.levers.end() ? nullptr : &*found;
}

/// The lever that undoes what a finding is about; empty where there is none.
std::string LeverIdOf(const Finding& finding) {
  if (finding.id == "straggler") {
    return finding.ranks.size() == 1 ? fmt::format("rank_at_median:{}", finding.ranks[0]) : "no_stragglers";
  }
  if (finding.id == "exposed_communication") return "perfect_overlap";
  if (finding.id == "data_loader") return "no_data_stalls";
  return "";
}

}  // namespace

std::set<std::string> LeversOfFindings(const std::vector<Finding>& findings) {
  std::set<std::string> ids;
  for (const Finding& finding : findings) {
    if (std::string id = LeverIdOf(finding); !id.empty()) ids.insert(std::move(id));
  }
  return ids;
}

void TakeSimulatedGains(const WhatIf& what_if, std::vector<Finding>* findings) {
  if (what_if.steps.empty() || what_if.error_ratio > kMaxError) return;
  for (Finding& finding : *findings) {
    const Lever* lever = FindLever(what_if, LeverIdOf(finding));
    if (lever == nullptr || lever->gain_ns < 0) continue;
    finding.gain_ns_per_step = lever->gain_ns;
    finding.gain_ratio = lever->gain_ratio;
    AddEvidence(&finding, "simulated_step_ns", lever->step_ns, "by simulation a step takes {} instead of {} if {}",
                TimeText(lever->step_ns), TimeText(what_if.simulated_step_ns), lever->title);
  }
  SortFindings(findings);
}

}  // namespace lockstep::analysis
