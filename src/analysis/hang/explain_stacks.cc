#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/hang/wording.h"

namespace lockstep::hang {
namespace {

bool Communicates(const RankCondition& condition) {
  switch (condition.main.place) {
    case MainThreadPlace::kCollective:
    case MainThreadPlace::kP2p:
    case MainThreadPlace::kDeviceSync:
    case MainThreadPlace::kStoreWait: return !condition.stopped;
    default: return false;
  }
}

void AddSitesOfMainThreads(const Findings& findings, const std::vector<int32_t>& communicating, Verdict& verdict) {
  for (const int32_t rank : verdict.culprit_ranks) {
    AddSite(verdict.sites, SiteOfMain(findings.conditions[static_cast<size_t>(rank)], rank, "culprit", "is in"));
  }
  for (const int32_t rank : communicating) {
    if (!Has(verdict.culprit_ranks, rank)) {
      AddSite(verdict.sites, SiteOfMain(findings.conditions[static_cast<size_t>(rank)], rank, "victim", "is in"));
    }
  }
}

Candidate Outside(const Findings& findings, std::vector<int32_t> outside, const std::vector<int32_t>& inside) {
  Candidate candidate;
  candidate.order = 46;
  Verdict& verdict = candidate.verdict;
  verdict.kind = VerdictKind::kStuckOutsideCollective;
  std::vector<int32_t> stopped;
  for (const int32_t rank : outside) {
    if (findings.conditions[static_cast<size_t>(rank)].stopped) {
      stopped.push_back(rank);
    }
  }
  if (!stopped.empty()) {
    outside = stopped;
  }
  verdict.culprit_ranks = outside;
  verdict.victim_ranks = Without(inside, outside);
  const RankCondition& first = findings.conditions[static_cast<size_t>(outside.front())];
  const RankCondition& waiter =
      findings.conditions[static_cast<size_t>(inside.empty() ? outside.front() : inside.front())];
  if (!stopped.empty()) {
    verdict.confidence = inside.empty() ? 0.7 : 0.9;
  } else if (outside.size() >= inside.size() || outside.size() + inside.size() < findings.conditions.size()) {
    verdict.confidence = 0.45;
  } else {
    verdict.confidence = first.main.activity == "computing" ? 0.6 : 0.7;
  }
  std::string who = Ranks(outside);
  who[0] = 'R';
  verdict.operation = waiter.main.operation_name;
  verdict.explanation = fmt::format(
      "{} {}{}", who, outside.size() == 1 ? "" : "are not in any communication; the first ", MainThreadText(first));
  if (!inside.empty()) {
    verdict.explanation += fmt::format("; {} {} in communication: rank {} {}", Ranks(inside),
                                       inside.size() == 1 ? "waits" : "wait", inside.front(), MainThreadText(waiter));
  }
  verdict.explanation += ". No flight record says for which operation.";
  AddSitesOfMainThreads(findings, inside, verdict);
  if (first.stopped) {
    verdict.advice.push_back(
        fmt::format("Continue it: kill -CONT PID of rank {}; find out who stopped it.", outside.front()));
  } else {
    verdict.advice.push_back("Collect again in a few seconds: a rank that is slow and not stuck will have moved.");
  }
  return candidate;
}

using Spot = std::tuple<std::string, std::string, int32_t>;

Candidate AllInside(const Findings& findings, const std::vector<int32_t>& inside) {
  std::map<Spot, std::vector<int32_t>> spots;
  for (const int32_t rank : inside) {
    const MainThread& main = findings.conditions[static_cast<size_t>(rank)].main;
    spots[{main.operation_name, main.file, main.line}].push_back(rank);
  }
  std::vector<std::vector<int32_t>> parties;
  for (auto& [spot, ranks] : spots) {
    parties.push_back(std::move(ranks));
  }
  std::stable_sort(parties.begin(), parties.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  Candidate candidate;
  candidate.order = 46;
  Verdict& verdict = candidate.verdict;
  const auto main_of = [&](int32_t rank) -> const MainThread& {
    return findings.conditions[static_cast<size_t>(rank)].main;
  };
  std::vector<int32_t> senders;
  std::vector<int32_t> receivers;
  for (const int32_t rank : inside) {
    if (main_of(rank).place == MainThreadPlace::kP2p) {
      (main_of(rank).operation == OperationKind::kRecv ? receivers : senders).push_back(rank);
    }
  }
  const std::vector<int32_t>& lonely = senders.empty() ? receivers : senders;
  if (senders.empty() != receivers.empty() && lonely.size() * 2 < inside.size() + 1) {
    verdict.kind = VerdictKind::kUnmatchedP2p;
    verdict.culprit_ranks = lonely;
    verdict.confidence = lonely.size() == 1 && inside.size() == findings.conditions.size() ? 0.6 : 0.45;
    verdict.operation = main_of(lonely.front()).operation_name;
    std::string who = Ranks(lonely);
    who[0] = 'R';
    verdict.explanation = fmt::format("{} {}, and no rank {}.", who,
                                      MainThreadText(findings.conditions[static_cast<size_t>(lonely.front())]),
                                      senders.empty() ? "sends" : "receives");
    verdict.advice = {"Compare sends and receives of this step on both ranks: count, order, tag and direction."};
  } else if (parties.size() == 1) {
    verdict.kind = VerdictKind::kUndecidable;
    verdict.confidence = 0.3;
    verdict.operation = main_of(inside.front()).operation_name;
    verdict.explanation =
        fmt::format("All ranks are in the same call: rank {} {}. Stacks do not show why it does not end.",
                    inside.front(), MainThreadText(findings.conditions[static_cast<size_t>(inside.front())]));
  } else {
    const bool clear = parties.size() == 2 && parties[0].size() < parties[1].size();
    const MainThread& few = main_of(parties.front().front());
    const MainThread& many = main_of(parties.back().front());
    verdict.kind = few.operation == many.operation ? VerdictKind::kSkippedCollective : VerdictKind::kOperationMismatch;
    verdict.culprit_ranks = parties.front();
    verdict.operation = many.operation_name;
    // A rank that waits for a waiting rank is elsewhere, too. So the place tells more only if one rank differs from all
    // others and every rank was seen.
    const bool whole = findings.view.record_count == 0 && inside.size() == findings.conditions.size();
    verdict.confidence = clear && whole && parties[0].size() == 1 ? (parties[1].size() >= 3 ? 0.6 : 0.5) : 0.4;
    std::string who = Ranks(parties.front());
    who[0] = 'R';
    verdict.explanation = fmt::format(
        "{} {}, where {} {}.", who, MainThreadText(findings.conditions[static_cast<size_t>(parties.front().front())]),
        Ranks(parties.back()), MainThreadText(findings.conditions[static_cast<size_t>(parties.back().front())]));
    verdict.explanation += " No flight record shows which of them is out of step.";
    verdict.advice = {
        "Compare how the two sides come to their calls: a branch that depends on the rank or on its data."};
  }
  std::sort(verdict.culprit_ranks.begin(), verdict.culprit_ranks.end());
  verdict.victim_ranks = Without(inside, verdict.culprit_ranks);
  AddSitesOfMainThreads(findings, inside, verdict);
  return candidate;
}

}  // namespace

std::vector<Candidate> ExplainStacks(const Findings& findings) {
  std::vector<int32_t> inside;
  std::vector<int32_t> outside;
  for (size_t i = 0; i < findings.conditions.size(); ++i) {
    const RankCondition& condition = findings.conditions[i];
    if (condition.gone || condition.main.dumps_itself) {
      continue;
    }
    if (Communicates(condition)) {
      inside.push_back(static_cast<int32_t>(i));
    } else if (condition.stopped || condition.main.place == MainThreadPlace::kOutside) {
      outside.push_back(static_cast<int32_t>(i));
    }
  }
  const bool any_stopped = std::any_of(outside.begin(), outside.end(), [&](int32_t rank) {
    return findings.conditions[static_cast<size_t>(rank)].stopped;
  });
  std::vector<Candidate> candidates;
  if ((!outside.empty() && !inside.empty()) || any_stopped) {
    candidates.push_back(Outside(findings, outside, inside));
  } else if (inside.size() > 1) {
    candidates.push_back(AllInside(findings, inside));
  }
  return candidates;
}

}  // namespace lockstep::hang
