#include <algorithm>

#include "hang/wording.h"

namespace lockstep::hang {
namespace {

void Append(std::vector<Candidate>& all, std::vector<Candidate> more) {
  for (Candidate& candidate : more) {
    all.push_back(std::move(candidate));
  }
}

constexpr double kSure = 0.5;

Candidate NothingKnown(const Findings& findings) {
  Candidate candidate;
  candidate.order = 99;
  candidate.verdict.confidence = 0.1;
  candidate.verdict.explanation = findings.job->ranks.empty()
                                      ? "There is nothing to judge by."
                                      : "What was collected does not tell what holds the job up.";
  return candidate;
}

}  // namespace

std::vector<Candidate> Decide(const Findings& findings) {
  std::vector<Candidate> all;
  const bool hung = IsHung(findings);
  Append(all, ExplainMismatches(findings));
  Append(all, ExplainDeaths(findings));
  Append(all, ExplainDeviceLag(findings));
  if (hung) {
    Append(all, ExplainLateRoots(findings));
    Append(all, ExplainAbsence(findings));
    Append(all, ExplainCycles(findings));
    Append(all, ExplainProgramForks(findings));
  }
  const auto is_sure = [](const Candidate& candidate) { return candidate.verdict.confidence >= kSure; };
  if (std::none_of(all.begin(), all.end(), is_sure)) {
    if (findings.view.record_count == 0 || hung ||
        std::any_of(findings.conditions.begin(), findings.conditions.end(),
                    [](const RankCondition& c) { return c.stopped; })) {
      Append(all, ExplainStacks(findings));
    }
    if (!hung && findings.mismatches.empty()) {
      Append(all, ExplainCalm(findings));
    }
  }
  all.push_back(NothingKnown(findings));
  std::stable_sort(all.begin(), all.end(), [&](const Candidate& a, const Candidate& b) {
    if (is_sure(a) != is_sure(b)) {
      return is_sure(a);
    }
    return a.order < b.order;
  });
  if (all.size() > 1) {
    all.pop_back();  // Only where nothing else is said.
  }
  Verdict& best = all.front().verdict;
  if (!is_sure(all.front())) {
    best.kind = VerdictKind::kUndecidable;
    best.culprit_ranks.clear();
    for (CodeSite& site : best.sites) {
      site.role = site.role == "culprit" ? "sibling" : site.role;
    }
  }
  return all;
}

}  // namespace lockstep::hang
