#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/hang/wording.h"

namespace lockstep::hang {
namespace {

using evidence::LogEvent;
using evidence::LogEventKind;
using evidence::NamedCall;

std::vector<const LogEvent*> EventsOf(const Findings& findings, LogEventKind kind) {
  std::vector<const LogEvent*> events;
  const auto add = [&](const std::vector<LogEvent>& log) {
    for (const LogEvent& event : log) {
      if (event.kind == kind) events.push_back(&event);
    }
  };
  for (const evidence::RankEvidence& rank : findings.job->ranks) add(rank.log);
  add(findings.job->log);
  return events;
}

/// Ascending, without those that the job does not have.
std::vector<int32_t> OfJob(const Findings& findings, const std::set<int32_t>& ranks) {
  std::vector<int32_t> known;
  for (const int32_t rank : ranks) {
    if (rank >= 0 && static_cast<size_t>(rank) < findings.view.ranks.size()) known.push_back(rank);
  }
  return known;
}

std::vector<int32_t> AllBut(const Findings& findings, const std::vector<int32_t>& without) {
  std::vector<int32_t> all;
  for (const RankView& rank : findings.view.ranks) all.push_back(rank.rank);
  return Without(all, without);
}

/// The group of all, as far as records tell of it.
void FillGroupOfAll(const Findings& findings, Verdict& verdict) {
  verdict.group_description = "default_pg";
  for (uint32_t g = 0; g < findings.view.groups.size(); ++g) {
    if (findings.view.groups[g].description == "default_pg") return FillGroup(findings.view, g, verdict);
  }
}

Candidate NotCome(const Findings& findings, int order, std::vector<int32_t> culprits, double confidence) {
  Candidate candidate;
  candidate.order = order;
  Verdict& verdict = candidate.verdict;
  verdict.kind = VerdictKind::kStuckOutsideCollective;
  verdict.confidence = confidence;
  verdict.victim_ranks = AllBut(findings, culprits);
  verdict.culprit_ranks = std::move(culprits);
  FillGroupOfAll(findings, verdict);
  verdict.advice = {
      fmt::format("Take a stack of {}: py-spy dump --native --pid PID, or lockstep hang --pid PID; where "
                  "the process has ended, read its log.",
                  Ranks(verdict.culprit_ranks))};
  return candidate;
}

/// PyTorch's report has priority over a process that has ended without an error, because all processes end this way
/// after it. It has no priority over a process whose end is explained.
int OrderOfReport(const Findings& findings) {
  const bool any_told =
      std::any_of(findings.conditions.begin(), findings.conditions.end(), [](const RankCondition& of) {
        return of.FailedByItself() && (of.signal != 0 || of.first_error != nullptr || of.out_of_memory);
      });
  return any_told ? 39 : 29;
}

/// "[Rank 0]: Ranks 2 failed to pass monitoredBarrier in 8000 ms".
std::vector<Candidate> ExplainBarrier(const Findings& findings) {
  std::set<int32_t> failed;
  for (const LogEvent* event : EventsOf(findings, LogEventKind::kMonitoredBarrier)) {
    failed.insert(event->blamed_ranks.begin(), event->blamed_ranks.end());
  }
  const std::vector<int32_t> culprits = OfJob(findings, failed);
  if (culprits.empty()) return {};
  Candidate candidate = NotCome(findings, OrderOfReport(findings), culprits, 0.85);
  candidate.verdict.operation = "monitored_barrier";
  candidate.verdict.explanation = fmt::format(
      "{} did not enter a monitored barrier: PyTorch reported it on the rank that waited.", Capital(Ranks(culprits)));
  return {candidate};
}

/// "- [2] finished collective #14, but didn't join collective #15 (count from 1)".
std::vector<Candidate> ExplainDesync(const Findings& findings) {
  std::set<int32_t> behind;
  std::set<int32_t> waiting;
  std::optional<int64_t> sequence;
  for (const LogEvent* event : EventsOf(findings, LogEventKind::kDesyncReport)) {
    behind.insert(event->blamed_ranks.begin(), event->blamed_ranks.end());
    waiting.insert(event->waiting_ranks.begin(), event->waiting_ranks.end());
    if (event->sequence) sequence = event->sequence;
  }
  for (const int32_t rank : waiting) behind.erase(rank);
  const std::vector<int32_t> culprits = OfJob(findings, behind);
  if (culprits.empty()) return {};
  Candidate candidate = NotCome(findings, OrderOfReport(findings), culprits, 0.85);
  Verdict& verdict = candidate.verdict;
  verdict.sequence = sequence;
  const std::vector<int32_t> joined = OfJob(findings, waiting);
  if (!joined.empty()) verdict.victim_ranks = joined;
  verdict.explanation = fmt::format("{} did not join {}{}: PyTorch's desync report says so.", Capital(Ranks(culprits)),
                                    sequence ? fmt::format("collective #{}", *sequence) : "the others' collectives",
                                    joined.empty() ? "" : fmt::format(", in which {} wait", Ranks(joined)));
  return {candidate};
}

using Signature = std::tuple<std::string, std::string, std::string>;

std::string CallText(const Signature& call) {
  const auto& [operation, shape, dtype] = call;
  if (operation.empty()) return "something else";
  return fmt::format("{} [{}] {}", operation, shape, dtype);
}

/// "Detected mismatch between collectives on ranks. Rank 0 is running ..., but Rank 2 is running ...". Each speaker
/// compares its call with those of all others in their order and names the first that differs: those before that one
/// agree with it.
std::vector<Candidate> ExplainFingerprints(const Findings& findings) {
  std::optional<int64_t> first;
  std::vector<const LogEvent*> events;
  for (const LogEvent* event : EventsOf(findings, LogEventKind::kCollectiveMismatch)) {
    // Another number than the process has in the job is that in a smaller group.
    if (event->calls.size() != 2 || event->rank.value_or(event->calls[0].rank) != event->calls[0].rank) continue;
    events.push_back(event);
    if (event->sequence) first = std::min(first.value_or(*event->sequence), *event->sequence);
  }
  std::erase_if(events, [&](const LogEvent* event) { return event->sequence != first; });
  const auto signature = [](const NamedCall& call) { return Signature(call.operation, call.shape, call.dtype); };
  std::map<int32_t, Signature> called;  // What is said of a rank by itself goes before what another says of it.
  std::map<int32_t, const LogEvent*> spoken;
  for (const LogEvent* event : events) {
    called[event->calls[0].rank] = signature(event->calls[0]);
    spoken[event->calls[0].rank] = event;
  }
  for (const bool readable : {true, false}) {
    for (const LogEvent* event : events) {
      const NamedCall& other = event->calls[1];
      if (other.operation.empty() != readable) called.try_emplace(other.rank, signature(other));
    }
  }
  for (const LogEvent* event : events) {
    const int32_t differs = event->calls[1].rank;
    for (int32_t rank = 0; rank < differs && static_cast<size_t>(rank) < findings.view.ranks.size(); ++rank) {
      called.try_emplace(rank, signature(event->calls[0]));
    }
  }
  std::map<Signature, std::set<int32_t>> parties;
  for (const auto& [rank, call] : called) parties[call].insert(rank);
  if (parties.size() < 2) return {};
  const auto larger = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  const auto most = std::max_element(parties.begin(), parties.end(), larger);
  std::set<int32_t> others;
  size_t next = 0;
  for (const auto& [call, ranks] : parties) {
    if (call == most->first) continue;
    others.insert(ranks.begin(), ranks.end());
    next = std::max(next, ranks.size());
  }
  const std::vector<int32_t> deviants = OfJob(findings, others);
  const std::vector<int32_t> majority = OfJob(findings, most->second);
  if (deviants.empty() || majority.empty()) return {};
  const size_t margin = most->second.size() - next;
  const Signature& odd = called.at(deviants.front());
  Candidate candidate;
  candidate.order = margin > 0 ? 12 : 45;
  Verdict& verdict = candidate.verdict;
  const bool same_operation = std::get<0>(odd) == std::get<0>(most->first);
  verdict.kind = !same_operation                                ? VerdictKind::kOperationMismatch
                 : std::get<1>(odd) != std::get<1>(most->first) ? VerdictKind::kSizeMismatch
                                                                : VerdictKind::kDtypeMismatch;
  verdict.confidence = margin >= 2 ? 0.9 : margin == 1 ? 0.75 : 0.4;
  verdict.sequence = first;
  verdict.operation = std::get<0>(most->first);
  FillGroupOfAll(findings, verdict);
  verdict.explanation = fmt::format(
      "{} called {} where {} called {}: PyTorch compared the fingerprints of the calls, and they differ.{}",
      Capital(Ranks(deviants)), CallText(odd), Ranks(majority), CallText(most->first),
      margin > 0 ? "" : " As many ranks made one call as the other, so the fingerprints do not show which is wrong.");
  verdict.culprit_ranks = deviants;
  verdict.victim_ranks = AllBut(findings, deviants);
  for (const auto& [rank, event] : spoken) {
    if (event->frame.line == 0 || static_cast<size_t>(rank) >= findings.view.ranks.size()) continue;
    const bool is_culprit = Has(deviants, rank);
    AddSite(verdict.sites,
            SiteOfError(*event, rank, is_culprit ? "culprit" : "victim", "called " + CallText(called.at(rank))));
  }
  verdict.advice = {fmt::format("Compare the code paths of {} with the others'.", Ranks(deviants))};
  return {candidate};
}

/// A rank that does not time out in a collective in which all others do has not entered it.
std::vector<Candidate> ExplainWatchdogs(const Findings& findings) {
  std::set<int32_t> timed_out;
  std::map<std::string, std::set<int32_t>> by_file;
  const LogEvent* shown = nullptr;
  for (const LogEvent* event : EventsOf(findings, LogEventKind::kWatchdogTimeout)) {
    // Of smaller groups the members would have to be known.
    if (!event->rank || !event->sequence || (!event->group.empty() && event->group != "0")) continue;
    if (shown == nullptr) shown = event;
    if (event->sequence != shown->sequence || event->operation != shown->operation) return {};
    timed_out.insert(*event->rank);
    by_file[event->file].insert(*event->rank);
  }
  const std::vector<int32_t> waiting = OfJob(findings, timed_out);
  const std::vector<int32_t> missing = AllBut(findings, waiting);
  if (waiting.size() < 2 || missing.empty() || missing.size() > waiting.size()) return {};
  const bool in_one_log =
      std::any_of(by_file.begin(), by_file.end(), [&](const auto& of) { return of.second.size() == waiting.size(); });
  const bool all_speak = in_one_log || std::all_of(missing.begin(), missing.end(), [&](int32_t rank) {
                           const evidence::RankEvidence* of = findings.view.ranks[static_cast<size_t>(rank)].evidence;
                           return of != nullptr && !of->log_file.empty();
                         });
  Candidate candidate = NotCome(findings, 44, missing, all_speak ? 0.7 : 0.55);
  Verdict& verdict = candidate.verdict;
  verdict.sequence = shown->sequence;
  verdict.operation = shown->operation;
  verdict.explanation = fmt::format(
      "{} timed out in {} #{} of the group of all ranks, and {} did not: {} not entered it.{}", Capital(Ranks(waiting)),
      shown->operation, *shown->sequence, Ranks(missing), missing.size() == 1 ? "it has" : "they have",
      all_speak ? "" : " Its own log is not among the files.");
  return {candidate};
}

}  // namespace

std::vector<Candidate> ExplainReports(const Findings& findings) {
  std::vector<Candidate> all;
  for (const auto explain : {ExplainFingerprints, ExplainBarrier, ExplainDesync, ExplainWatchdogs}) {
    for (Candidate& candidate : explain(findings)) all.push_back(std::move(candidate));
  }
  return all;
}

}  // namespace lockstep::hang
