#include <fmt/format.h>

#include <algorithm>

#include "analysis/hang/record_age.h"
#include "analysis/hang/wording.h"

namespace lockstep::hang {
namespace {

Candidate Straggling(const Findings& findings) {
  Candidate candidate;
  candidate.order = 80;
  Verdict& verdict = candidate.verdict;
  verdict.kind = VerdictKind::kStraggler;
  verdict.culprit_ranks = findings.arrival.stragglers;
  const Arrival& worst =
      *std::max_element(findings.arrival.ranks.begin(), findings.arrival.ranks.end(),
                        [](const Arrival& a, const Arrival& b) { return a.own_delay_ns < b.own_delay_ns; });
  verdict.confidence = findings.arrival.share > 0.3 ? 0.9 : 0.7;
  for (const int32_t rank : verdict.culprit_ranks) {
    for (const uint32_t g : findings.view.ranks[static_cast<size_t>(rank)].groups) {
      if (findings.view.groups[g].tracks.size() < findings.view.groups[g].members.size()) {
        verdict.confidence = 0.4;  // It may be late because of a partner that has no record.
      }
    }
  }
  if (worst.worst_group != kNone) {
    FillGroup(findings.view, worst.worst_group, verdict);
    verdict.sequence = worst.worst_sequence;
    const Track* track = findings.view.groups[worst.worst_group].TrackOf(worst.rank);
    verdict.operation = PlainNameOf(findings.view, *track, worst.worst_entry);
    AddSite(verdict.sites, SiteOfEntry(findings.view, *track, worst.worst_entry, "culprit",
                                       fmt::format("came late to {} #{}", verdict.operation, worst.worst_sequence)));
  }
  for (const RankView& rank : findings.view.ranks) {
    if (rank.has_record && !Has(verdict.culprit_ranks, rank.rank)) {
      verdict.victim_ranks.push_back(rank.rank);
    }
  }
  std::string who = Ranks(verdict.culprit_ranks);
  who[0] = 'R';
  const bool many = verdict.culprit_ranks.size() > 1;
  verdict.explanation = fmt::format(
      "{} {} slow, not stuck: the job makes progress, but rank {} arrived late by its own delay at {} of {} "
      "collectives, "
      "{} in all, {:.0f} % of the time that the records cover.",
      who, many ? "are" : "is", worst.rank, worst.late_calls, worst.calls, Seconds(worst.own_delay_ns),
      findings.arrival.share * 100);
  verdict.advice = {fmt::format("Capture a trace of {} and of one other rank and compare the step: lockstep capture.",
                                Ranks(verdict.culprit_ranks)),
                    "Look at clocks, power limits and processor time stolen on that node: lockstep doctor --job ID."};
  return candidate;
}

Candidate Healthy(const Findings& findings) {
  Candidate candidate;
  candidate.order = 90;
  Verdict& verdict = candidate.verdict;
  verdict.kind = VerdictKind::kHealthy;
  size_t without = 0;
  for (const RankView& rank : findings.view.ranks) {
    without += rank.has_record ? 0 : 1;
  }
  verdict.confidence = without == 0 ? 0.9 : 0.6;
  std::string open;
  for (const Flight& flight : findings.waits.flights) {
    const GroupView& group = findings.view.groups[flight.group];
    open = fmt::format(" {} #{} of group {} was in flight, with all members there.",
                       flight.open_on.size() == 1 ? fmt::format("On rank {} an operation,", flight.open_on.front())
                                                  : std::string("Operation"),
                       flight.sequence, GroupText(group));
  }
  std::optional<int64_t> longest;
  for (const Wait& wait : findings.waits.waits) {
    if (const std::optional<int64_t> age = OpenFor(findings, *wait.track, wait.entry)) {
      longest = std::max(longest.value_or(0), *age);
    }
  }
  if (longest) {
    open += fmt::format(" The longest wait has lasted {}, which is ordinary for this job.", Seconds(*longest));
  }
  verdict.explanation =
      fmt::format("Nothing hangs in what was collected: no rank waits for one that does not arrive.{}{}", open,
                  without == 0 ? "" : fmt::format(" {} left no record.", Plural(without, "rank")));
  verdict.explanation[0] = 'N';
  verdict.advice = {"If it does not move, collect once more: lockstep hang --job ID."};
  return candidate;
}

/// All members entered with equal calls, none completed, and it takes too long or a log says that it timed out; or its
/// age is not known.
std::optional<Candidate> NobodyCompletes(const Findings& findings) {
  const Flight* stuck = nullptr;
  const Flight* undated = nullptr;
  int64_t oldest = 0;
  for (const Flight& flight : findings.waits.flights) {
    if (flight.completed_somewhere) {
      continue;
    }
    bool is_dated = false;
    for (const int32_t rank : flight.open_on) {
      const Track* track = findings.view.groups[flight.group].TrackOf(rank);
      const Call* call = FindCall(*track, flight.sequence);
      const std::optional<int64_t> age = call == nullptr ? std::nullopt : OpenFor(findings, *track, call->entry);
      is_dated = is_dated || age;
      if (age && *age > findings.patience_ns && *age > oldest) {
        oldest = *age;
        stuck = &flight;
      }
    }
    undated = undated == nullptr && !is_dated && !findings.went_on ? &flight : undated;
  }
  const evidence::LogEvent* timeout = nullptr;
  for (const RankCondition& condition : findings.conditions) {
    timeout = timeout == nullptr ? condition.timeout : timeout;
  }
  if (stuck == nullptr && timeout != nullptr) {
    for (const Flight& flight : findings.waits.flights) {
      stuck = !flight.completed_somewhere && stuck == nullptr ? &flight : stuck;
    }
  }
  const bool nothing_dates_it = stuck == nullptr;
  stuck = nothing_dates_it ? undated : stuck;
  if (stuck == nullptr) {
    return std::nullopt;
  }
  Candidate candidate;
  candidate.order = 70;
  Verdict& verdict = candidate.verdict;
  FillGroup(findings.view, stuck->group, verdict);
  verdict.sequence = stuck->sequence;
  verdict.victim_ranks = stuck->open_on;
  const Track* track = findings.view.groups[stuck->group].TrackOf(stuck->open_on.front());
  const Call* call = FindCall(*track, stuck->sequence);
  verdict.operation = PlainNameOf(findings.view, *track, call->entry);
  AddSite(verdict.sites, SiteOfCall(findings.view, *track, *call, "victim", "waits in " + verdict.operation));
  bool transport = false;
  for (const evidence::NcclLogFinding& finding : findings.job->nccl) {
    transport = transport || evidence::IsTransportError(finding);
  }
  verdict.kind = transport ? VerdictKind::kPeerUnreachable : VerdictKind::kUndecidable;
  verdict.confidence = transport ? 0.6 : 0.4;
  const std::string came =
      fmt::format("All members of group {} entered {} #{} with matching calls, and none completed it",
                  GroupText(findings.view.groups[stuck->group]), verdict.operation, stuck->sequence);
  if (nothing_dates_it) {
    verdict.explanation = came +
                          ". The records have no time: if the operation was just in flight, the job is healthy; if it "
                          "has not moved since, "
                          "the cause is the network or a device between the ranks, not a rank's code.";
    verdict.advice = {"Collect once more, and see whether it has moved: lockstep hang --job ID.",
                      "Copy dumps with their times: cp -p, scp -p."};
    return candidate;
  }
  verdict.explanation = fmt::format(
      "{}{}: the cause is the network or a device between them, not a rank's code. Records do not show which link.",
      came, oldest > 0 ? " in " + Seconds(oldest) : std::string());
  verdict.advice = {"Look for completion errors in NCCL's logs: lockstep nccl-log PATH.",
                    "Check links and pairs of nodes: lockstep doctor --host A,B."};
  return candidate;
}

}  // namespace

bool IsHung(const Findings& findings) {
  if (findings.went_on) {
    return false;
  }
  for (const Wait& wait : findings.waits.waits) {
    const std::optional<int64_t> age = OpenFor(findings, *wait.track, wait.entry);
    if (!age || *age >= findings.patience_ns) {
      return true;
    }
  }
  return false;
}

std::vector<Candidate> ExplainLateRoots(const Findings& findings) {
  if (findings.now_ns || findings.arrival.stragglers.empty() || findings.arrival.stragglers != findings.waits.roots) {
    return {};
  }
  Candidate candidate = Straggling(findings);
  candidate.order = 38;
  candidate.verdict.confidence = std::min(candidate.verdict.confidence, 0.6);
  candidate.verdict.explanation +=
      " The others wait for it now as in the rounds before, and the records have no time: if it has not moved when you "
      "collect again, it is stuck.";
  return {std::move(candidate)};
}

std::vector<Candidate> ExplainCalm(const Findings& findings) {
  if (findings.view.record_count == 0) {
    return {};
  }
  if (std::optional<Candidate> stuck = NobodyCompletes(findings)) {
    return {std::move(*stuck)};
  }
  if (!findings.arrival.stragglers.empty()) {
    return {Straggling(findings)};
  }
  return {Healthy(findings)};
}

}  // namespace lockstep::hang
