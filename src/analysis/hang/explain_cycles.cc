#include <fmt/format.h>

#include <algorithm>

#include "analysis/hang/signature_match.h"
#include "analysis/hang/wording.h"

namespace lockstep::hang {
namespace {

/// Whether the rank used to make its newest call after the one it is now missed in: then it left that one out, and did
/// not merely come to the two in another order.
bool UsedToFollow(const Findings& findings, int32_t rank, const Wait& missed) {
  const std::vector<Step> steps = StepsOf(findings.view, rank, 512);
  if (steps.size() < 3) {
    return false;
  }
  const Call* call = missed.sequence ? FindCall(*missed.track, *missed.sequence) : nullptr;
  if (call == nullptr) {
    return false;
  }
  const Step& now = steps.back();
  for (size_t i = steps.size() - 1; i-- > 0;) {
    const bool is_missed = steps[i].group == missed.group &&
                           Match(findings.view, steps[i].signature, call->signature) &&
                           (call->site == 0 || steps[i].site == 0 || steps[i].site == call->site);
    if (!is_missed) {
      continue;
    }
    for (size_t next = i + 1; next < std::min(steps.size() - 1, i + 8); ++next) {
      if (steps[next].group == now.group && steps[next].signature == now.signature &&
          (steps[next].site == now.site || steps[next].site == 0 || now.site == 0)) {
        return true;
      }
    }
  }
  return false;
}

const Wait* FirstWaitOf(const Findings& findings, int32_t rank, const std::vector<int32_t>& among) {
  for (const uint32_t index : findings.waits.of_rank[static_cast<size_t>(rank)]) {
    const Wait& wait = findings.waits.waits[index];
    if (std::any_of(wait.waits_for.begin(), wait.waits_for.end(), [&](int32_t other) { return Has(among, other); })) {
      return &wait;
    }
  }
  return nullptr;
}

/// Follows one wait of each rank until a rank comes again.
std::vector<WaitEdge> Walk(const Findings& findings, int32_t start, const std::vector<int32_t>& cycle) {
  std::vector<WaitEdge> edges;
  std::vector<int32_t> seen;
  int32_t rank = start;
  while (std::find(seen.begin(), seen.end(), rank) == seen.end()) {
    const Wait* wait = FirstWaitOf(findings, rank, cycle);
    if (wait == nullptr) {
      return {};
    }
    seen.push_back(rank);
    WaitEdge edge;
    edge.rank = rank;
    edge.waits_for = wait->waits_for;
    edge.group = findings.view.groups[wait->group].name;
    edge.sequence = wait->sequence;
    edge.operation = PlainNameOf(findings.view, *wait->track, wait->entry);
    edges.push_back(edge);
    int32_t next = -1;
    for (const int32_t other : wait->waits_for) {
      const bool closes = std::find(seen.begin(), seen.end(), other) != seen.end();
      if (Has(cycle, other) && (next < 0 || closes)) {
        next = other;
      }
    }
    rank = next;
  }
  const auto first = std::find(seen.begin(), seen.end(), rank) - seen.begin();
  edges.erase(edges.begin(), edges.begin() + first);
  return edges;
}

std::string WalkText(const Findings& findings, const std::vector<WaitEdge>& edges) {
  std::string text;
  for (size_t i = 0; i < edges.size() && i < 6; ++i) {
    const WaitEdge& edge = edges[i];
    const int32_t next = edges[(i + 1) % edges.size()].rank;
    text += fmt::format("{}rank {} waits in {}{} of group {} for rank {}", i == 0 ? "" : ", ", edge.rank,
                        edge.operation, edge.sequence ? fmt::format(" #{}", *edge.sequence) : "", edge.group, next);
  }
  (void)findings;
  return edges.size() > 6 ? text + ", and so on" : text;
}

void AddSitesOfWaits(const Findings& findings, const std::vector<int32_t>& cycle, Verdict& verdict) {
  for (const bool culprits : {true, false}) {
    for (const int32_t rank : cycle) {
      const Wait* wait = FirstWaitOf(findings, rank, cycle);
      if (wait != nullptr && Has(verdict.culprit_ranks, rank) == culprits) {
        const std::string operation = PlainNameOf(findings.view, *wait->track, wait->entry);
        AddSite(verdict.sites,
                SiteOfEntry(findings.view, *wait->track, wait->entry, culprits ? "culprit" : "victim",
                            "waits in " + operation + (wait->sequence ? fmt::format(" #{}", *wait->sequence) : "")));
      }
    }
  }
}

Candidate ExplainCycle(const Findings& findings, const std::vector<int32_t>& cycle) {
  Candidate candidate;
  candidate.order = 42;
  Verdict& verdict = candidate.verdict;
  // The rank that most ranks wait for, and by how many more than for the next one.
  std::vector<int32_t> by_awaited = cycle;
  const auto awaited = [&](int32_t rank) { return findings.waits.awaited_by[static_cast<size_t>(rank)]; };
  std::stable_sort(by_awaited.begin(), by_awaited.end(), [&](int32_t a, int32_t b) { return awaited(a) > awaited(b); });
  const int32_t suspect = by_awaited[0];
  const bool stands_out = by_awaited.size() > 2 && awaited(suspect) > awaited(by_awaited[1]);
  const Wait* p2p = nullptr;
  size_t p2p_count = 0;
  size_t wait_count = 0;
  for (const int32_t rank : cycle) {
    const Wait* wait = FirstWaitOf(findings, rank, cycle);
    if (wait != nullptr) {
      ++wait_count;
      p2p_count += wait->is_p2p ? 1 : 0;
      p2p = wait->is_p2p ? wait : p2p;
    }
  }
  verdict.cycle = Walk(findings, suspect, cycle);
  const std::string walk = WalkText(findings, verdict.cycle);
  if (p2p != nullptr && p2p_count < wait_count) {
    verdict.kind = VerdictKind::kUnmatchedP2p;
    verdict.culprit_ranks = {p2p->waits_for.front()};
    verdict.confidence = 0.8;
    FillGroup(findings.view, p2p->group, verdict);
    verdict.operation = PlainNameOf(findings.view, *p2p->track, p2p->entry);
    verdict.explanation = fmt::format("Rank {} {} rank {}, which has gone on without the {}: {}.", p2p->rank,
                                      p2p->is_send ? "sends to" : "receives from", verdict.culprit_ranks.front(),
                                      p2p->is_send ? "receive" : "send", walk);
    verdict.advice = {"Compare sends and receives of the two ranks for this step: count, order and direction."};
  } else {
    const Wait* missed = nullptr;  // The call in which the others wait for the suspect.
    if (stands_out) {
      for (const Wait& wait : findings.waits.waits) {
        if (wait.rank != suspect && Has(wait.waits_for, suspect) && !wait.is_p2p &&
            (missed == nullptr ||
             findings.view.groups[wait.group].members.size() > findings.view.groups[missed->group].members.size())) {
          missed = &wait;
        }
      }
    }
    const bool skipped = missed != nullptr && UsedToFollow(findings, suspect, *missed);
    const Wait* shown = missed != nullptr ? missed : FirstWaitOf(findings, suspect, cycle);
    if (shown != nullptr) {
      FillGroup(findings.view, shown->group, verdict);
      verdict.sequence = shown->sequence;
      verdict.operation = PlainNameOf(findings.view, *shown->track, shown->entry);
    }
    if (skipped) {
      verdict.kind = VerdictKind::kSkippedCollective;
      verdict.culprit_ranks = {suspect};
      verdict.confidence = 0.75;
      const Wait* own = FirstWaitOf(findings, suspect, cycle);
      verdict.explanation = fmt::format(
          "Rank {} skipped {}{} of group {} and is in {} at {}, which used to come after it: {}.", suspect,
          verdict.operation, verdict.sequence ? fmt::format(" #{}", *verdict.sequence) : "",
          GroupText(findings.view.groups[shown->group]), PlainNameOf(findings.view, *own->track, own->entry),
          own->site == 0 ? std::string("a place that is not recorded") : Place(findings.view, own->site), walk);
      verdict.advice = {"Look for a branch or an early return that depends on the rank or on its data."};
    } else {
      verdict.kind = VerdictKind::kDeadlock;
      verdict.culprit_ranks = stands_out ? std::vector<int32_t>{suspect} : cycle;
      verdict.confidence = stands_out ? 0.75 : 0.85;
      verdict.explanation =
          fmt::format("Ranks wait for one another in a circle across groups: {}.{}", walk,
                      stands_out ? fmt::format(" Rank {} is the one that most wait for.", suspect) : "");
      verdict.advice = {"Make all ranks use the groups in one order.",
                        "If two groups must be used at once, issue both asynchronously and wait afterwards."};
    }
  }
  std::vector<int32_t> victims = findings.waits.HeldUpBy(cycle);
  victims.insert(victims.end(), cycle.begin(), cycle.end());
  std::sort(victims.begin(), victims.end());
  verdict.victim_ranks = Without(victims, verdict.culprit_ranks);
  AddSitesOfWaits(findings, cycle, verdict);
  return candidate;
}

}  // namespace

std::vector<WaitEdge> CycleThrough(const Findings& findings, int32_t rank) {
  for (const std::vector<int32_t>& cycle : findings.waits.cycles) {
    if (Has(cycle, rank)) {
      return Walk(findings, rank, cycle);
    }
  }
  return {};
}

std::vector<Candidate> ExplainCycles(const Findings& findings) {
  std::vector<Candidate> candidates;
  for (const std::vector<int32_t>& cycle : findings.waits.cycles) {
    candidates.push_back(ExplainCycle(findings, cycle));
  }
  return candidates;
}

}  // namespace lockstep::hang
