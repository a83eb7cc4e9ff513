#include <fmt/format.h>

#include <algorithm>

#include "analysis/hang/wording.h"

namespace lockstep::hang {

std::vector<Candidate> ExplainProgramForks(const Findings& findings) {
  if (findings.forks.empty()) {
    return {};
  }
  // The fork that happened first, and those of other ranks at the same place.
  const auto created = [&](const ProgramFork& fork) {
    return findings.view.EntryOf(*findings.view.groups[fork.own.group].TrackOf(fork.rank), fork.own.entry)
        .created_unix_ns;
  };
  const ProgramFork* first = &findings.forks.front();
  for (const ProgramFork& fork : findings.forks) {
    first = created(fork) < created(*first) ? &fork : first;
  }
  Candidate candidate;
  // A rank that others wait for and that has no open operation has not arrived: that explanation goes first.
  const bool any_absent = std::any_of(findings.waits.roots.begin(), findings.waits.roots.end(), [&](int32_t rank) {
    return findings.waits.has_open[static_cast<size_t>(rank)] == 0;
  });
  // In a circle it may yet come to what it seems to have left out.
  const bool may_come = first->by_history && first->kind == Divergence::kSkips && !findings.waits.cycles.empty();
  candidate.order = any_absent ? 41 : 39;
  Verdict& verdict = candidate.verdict;
  for (const ProgramFork& fork : findings.forks) {
    if (fork.before.Same(first->before)) {
      verdict.culprit_ranks.push_back(fork.rank);
      const Track* own = findings.view.groups[fork.own.group].TrackOf(fork.rank);
      AddSite(verdict.sites,
              SiteOfEntry(findings.view, *own, fork.own.entry, "culprit",
                          fmt::format("called {} instead", PlainNameOf(findings.view, *own, fork.own.entry))));
    }
  }
  const int32_t other = first->others.front();
  const Track* common = nullptr;
  uint32_t common_group = 0;
  uint32_t common_entry = 0;
  for (const uint32_t g : findings.view.ranks[static_cast<size_t>(other)].groups) {
    if (findings.view.groups[g].siblings == first->common.siblings) {
      common = findings.view.groups[g].TrackOf(other);
      common_group = g;
      const Call* call = FindCall(*common, first->common.sequence);
      if (call != nullptr) {
        common_entry = call->entry;
        break;
      }
    }
  }
  if (common == nullptr) {
    return {};
  }
  AddSite(verdict.sites, SiteOfEntry(findings.view, *common, common_entry, "sibling",
                                     fmt::format("called {} #{}", PlainNameOf(findings.view, *common, common_entry),
                                                 first->common.sequence)));
  verdict.kind = may_come                            ? VerdictKind::kDeadlock
                 : first->kind == Divergence::kSkips ? VerdictKind::kSkippedCollective
                 : first->kind == Divergence::kAdds  ? VerdictKind::kExtraCollective
                                                     : VerdictKind::kDeadlock;
  verdict.confidence = first->by_history ? 0.65 : first->others.size() >= 3 ? 0.85 : 0.7;
  const bool extra = verdict.kind == VerdictKind::kExtraCollective;
  const Track* own = findings.view.groups[first->own.group].TrackOf(first->rank);
  verdict.operation =
      extra ? PlainNameOf(findings.view, *own, first->own.entry) : PlainNameOf(findings.view, *common, common_entry);
  verdict.sequence = extra ? first->own.sequence : first->common.sequence;
  uint32_t group = first->own.group;
  for (const uint32_t g : findings.view.ranks[static_cast<size_t>(first->rank)].groups) {
    group = !extra && findings.view.groups[g].siblings == first->common.siblings ? g : group;
  }
  FillGroup(findings.view, group, verdict);
  std::string who = Ranks(verdict.culprit_ranks);
  who[0] = 'R';
  const auto at = [&](uint32_t site) { return site == 0 ? std::string() : " at " + Place(findings.view, site); };
  const std::string own_text = DescribeCall(findings.view, *own, first->own.entry) + at(first->own.site);
  const std::string common_text = DescribeCall(findings.view, *common, common_entry) + at(first->common.site);
  const char* verb = verdict.kind == VerdictKind::kSkippedCollective ? "left out the next call there and continued with"
                     : extra                                         ? "alone continued with"
                                                                     : "came first to";
  verdict.explanation = fmt::format(
      "{} {} {} of group {}, where {}, which did the same until then, called {} of group {}{}.", who, verb, own_text,
      GroupText(findings.view.groups[first->own.group]), Ranks(first->others), common_text,
      GroupText(findings.view.groups[common_group]), first->by_history ? ", as all did in earlier rounds" : "");
  std::vector<int32_t> victims = findings.waits.HeldUpBy(verdict.culprit_ranks);
  verdict.victim_ranks = Without(victims, verdict.culprit_ranks);
  AddVictims(findings, verdict);
  // Where those wait that went the usual way, that is said already.
  std::vector<std::pair<std::string, int32_t>> waiting;
  for (const CodeSite& site : verdict.sites) {
    if (site.role == "victim") {
      waiting.emplace_back(site.file, site.line);
    }
  }
  std::erase_if(verdict.sites, [&](const CodeSite& site) {
    return site.role == "sibling" &&
           std::find(waiting.begin(), waiting.end(), std::make_pair(site.file, site.line)) != waiting.end();
  });
  if (verdict.kind == VerdictKind::kDeadlock) {
    verdict.cycle = CycleThrough(findings, first->rank);
  }
  verdict.advice = {"Look for a branch, an early return or a loop bound that depends on the rank or on its data.",
                    "Run a short job with TORCH_DISTRIBUTED_DEBUG=DETAIL: it stops at the first call that differs."};
  return {candidate};
}

}  // namespace lockstep::hang
