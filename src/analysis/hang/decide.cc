#include <algorithm>

#include "analysis/hang/wording.h"

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
                                      ? "There is no evidence to decide from."
                                      : "The collected evidence does not show what holds the job up.";
  return candidate;
}

/// A record without frames (of a process that had no time for them) does not say where a call was made: then the main
/// threads' stacks do. Culprits first.
void AddMainSites(const Findings& findings, Verdict& verdict) {
  const auto lacks = [&](const char* role) {
    return std::none_of(verdict.sites.begin(), verdict.sites.end(),
                        [&](const CodeSite& site) { return site.role == role; });
  };
  const auto main_of = [&](int32_t rank) -> const MainThread* {
    const RankCondition& condition = findings.conditions[static_cast<size_t>(rank)];
    return condition.main.line > 0 && !condition.main.dumps_itself ? &condition.main : nullptr;
  };
  if (lacks("culprit")) {
    std::vector<CodeSite> sites;
    for (const int32_t rank : verdict.culprit_ranks) {
      if (main_of(rank) != nullptr) {
        AddSite(sites, SiteOfMain(findings.conditions[static_cast<size_t>(rank)], rank, "culprit", "is in"));
      }
    }
    verdict.sites.insert(verdict.sites.begin(), sites.begin(), sites.end());
  }
  if (lacks("victim")) {
    for (const int32_t rank : verdict.victim_ranks) {
      const MainThread* main = main_of(rank);
      if (main != nullptr && (main->place == MainThreadPlace::kCollective || main->place == MainThreadPlace::kP2p)) {
        AddSite(verdict.sites, SiteOfMain(findings.conditions[static_cast<size_t>(rank)], rank, "victim",
                                          "waits in " + main->operation_name));
      }
    }
  }
}

}  // namespace

std::vector<Candidate> Decide(const Findings& findings) {
  std::vector<Candidate> all;
  const bool hung = IsHung(findings);
  Append(all, ExplainMismatches(findings));
  Append(all, ExplainDeaths(findings));
  Append(all, ExplainDeviceLag(findings));
  Append(all, ExplainReports(findings));
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
    Append(all, ExplainRas(findings));
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
  AddMainSites(findings, best);
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
