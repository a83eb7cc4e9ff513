#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/hang/unrecorded.h"
#include "analysis/hang/wording.h"
#include "base/nanoseconds.h"

namespace lockstep::hang {
namespace {

const RankCondition& ConditionOf(const Findings& findings, int32_t rank) {
  return findings.conditions[static_cast<size_t>(rank)];
}

/// The wait for any of `ranks` that began first.
const Wait* FirstWaitFor(const Findings& findings, const std::vector<int32_t>& ranks) {
  const Wait* first = nullptr;
  int64_t first_ns = 0;
  for (const bool perhaps : {false, true}) {
    for (const Wait& wait : findings.waits.waits) {
      const int64_t created = findings.view.EntryOf(*wait.track, wait.entry).created_unix_ns;
      if (WaitsForAny(wait, ranks, perhaps) && (first == nullptr || created < first_ns)) {
        first = &wait;
        first_ns = created;
      }
    }
    if (first != nullptr) {
      break;
    }
  }
  return first;
}

/// Group, sequence and operation that the culprits are missed in, and the first half of a sentence about it.
std::string Missed(const Findings& findings, const std::vector<int32_t>& culprits, Verdict& verdict) {
  const Wait* wait = FirstWaitFor(findings, culprits);
  verdict.victim_ranks = findings.waits.HeldUpBy(culprits);
  if (wait == nullptr) {
    return "";
  }
  FillGroup(findings.view, wait->group, verdict);
  verdict.sequence = wait->sequence;
  verdict.operation = PlainNameOf(findings.view, *wait->track, wait->entry);
  const std::string place = Place(findings.view, wait->site);
  return fmt::format("{} {} in {}{} of group {}{}", Ranks(verdict.victim_ranks),
                     verdict.victim_ranks.size() == 1 ? "waits" : "wait", verdict.operation,
                     wait->sequence ? fmt::format(" #{}", *wait->sequence) : "",
                     GroupText(findings.view.groups[wait->group]), place.empty() ? "" : " (" + place + ")");
}

std::string SilentFor(const Findings& findings, int32_t rank) {
  const RankView& view = findings.view.ranks[static_cast<size_t>(rank)];
  const std::optional<int64_t> newest = view.newest_created_ns;
  const std::optional<int64_t> made = findings.now_ns ? view.record_ns : std::nullopt;  // Not a file's.
  const std::optional<int64_t> now = made ? made : findings.now_ns ? findings.now_ns : findings.view.newest_created_ns;
  if (!newest || !now || *now - *newest < kSecondNs) {
    return "";
  }
  return fmt::format(" and has issued nothing for {}{}", findings.now_ns ? "" : "at least ", Seconds(*now - *newest));
}

Verdict StuckOutside(const Findings& findings, const std::vector<int32_t>& culprits) {
  Verdict verdict;
  verdict.kind = VerdictKind::kStuckOutsideCollective;
  verdict.culprit_ranks = culprits;
  const std::string missed = Missed(findings, culprits, verdict);
  verdict.confidence = 0.95;
  std::string how;
  for (const int32_t rank : culprits) {
    const RankCondition& condition = ConditionOf(findings, rank);
    const std::string text = MainThreadText(condition);
    if (text.empty()) {
      verdict.confidence = std::min(verdict.confidence, 0.8);
    }
    if (condition.main.place != MainThreadPlace::kUnknown) {
      AddSite(verdict.sites, SiteOfMain(condition, rank, "culprit", condition.stopped ? "is stopped in" : "is in"));
    }
    if (!text.empty() && how.size() < 400) {
      how += fmt::format(" The main thread of rank {} {}.", rank, text);
    }
  }
  std::string who = Ranks(culprits);
  who[0] = 'R';
  const bool many = culprits.size() > 1;
  verdict.explanation =
      fmt::format("{} {} not arrived{}: {}, and {} no open operation in any group.{}", who, many ? "have" : "has",
                  SilentFor(findings, culprits.front()), missed, many ? "they have" : "it has", how);
  AddVictims(findings, verdict);
  const RankCondition& first = ConditionOf(findings, culprits.front());
  if (first.stopped) {
    verdict.advice.push_back(
        fmt::format("Continue the process: kill -CONT PID of rank {}; find out who stopped it.", culprits.front()));
  } else if (first.disk_wait) {
    verdict.advice.push_back("State D means storage or a driver: look at the file system, NFS and dmesg of that node.");
  } else if (!first.main.activity.empty() || !first.main.file.empty()) {
    verdict.advice.push_back(fmt::format("Find out why it takes so long at {}.",
                                         Place(first.main.function, first.main.file, first.main.line)));
  } else {
    verdict.advice.push_back(fmt::format(
        "Take a stack of {}: py-spy dump --native --pid PID, or lockstep hang --pid PID.", Ranks(culprits)));
  }
  return verdict;
}

/// A root that is in a send or receive that no rank answers and no record holds.
Verdict UnansweredP2p(const Findings& findings, int32_t rank) {
  const RankCondition& condition = ConditionOf(findings, rank);
  const bool is_send = condition.main.operation != OperationKind::kRecv;
  Verdict verdict;
  verdict.kind = VerdictKind::kUnmatchedP2p;
  const std::string missed = Missed(findings, {rank}, verdict);
  verdict.operation = condition.main.operation_name;
  const std::vector<int32_t> fewer = Without(MadeFewerUnrecorded(findings), {rank});
  std::vector<int32_t> peers = fewer;
  for (const int32_t peer : fewer.empty() ? LikelyPeers(findings, rank, is_send) : std::vector<int32_t>()) {
    const MainThread& main = ConditionOf(findings, peer).main;
    const OperationKind wanted = is_send ? OperationKind::kRecv : OperationKind::kSend;
    const bool answers = main.place == MainThreadPlace::kP2p && main.operation == wanted;
    const bool is_held = Has(verdict.victim_ranks, peer) || !findings.waits.Waits(peer);
    if (!answers && is_held) {
      peers.push_back(peer);  // It went on until it, too, was held up by this.
    }
  }
  const std::string here = MainThreadText(condition);
  AddSite(verdict.sites, SiteOfMain(condition, rank, peers.empty() ? "culprit" : "victim", "is in"));
  if (!peers.empty()) {
    const int32_t peer = peers.front();  // The next stage of a send, the one before of a receive.
    verdict.culprit_ranks = {peer};
    verdict.confidence = peers.size() == 1 ? (fewer.empty() ? 0.7 : 0.8) : 0.55;
    const MainThread& main = ConditionOf(findings, peer).main;
    if (fewer.empty() && main.place == MainThreadPlace::kP2p && main.operation == OperationKind::kRecv) {
      verdict.confidence = 0.4;  // It may not have come to it yet: another holds it up in turn.
    }
    const std::string there = MainThreadText(ConditionOf(findings, peer));
    verdict.explanation =
        fmt::format("Rank {} {} and no rank {}: {}rank {} {}, so it left the {} out. {}.", rank, here,
                    is_send ? "receives" : "sends", fewer.empty() ? "its peer by the layout of the groups, " : "", peer,
                    (there.empty() ? "has no such call open" : there) +
                        (fewer.empty() ? "" : " and made fewer sends and receives than in every earlier round"),
                    is_send ? "receive" : "send", missed);
    AddSite(verdict.sites, SiteOfMain(ConditionOf(findings, peer), peer, "culprit", "is in"));
    verdict.victim_ranks.push_back(rank);
    std::sort(verdict.victim_ranks.begin(), verdict.victim_ranks.end());
    verdict.victim_ranks = Without(verdict.victim_ranks, verdict.culprit_ranks);
  } else {
    verdict.culprit_ranks = {rank};
    // Where several wait in sends and receives they may wait for one another.
    const auto in_p2p = std::count_if(findings.conditions.begin(), findings.conditions.end(),
                                      [](const RankCondition& of) { return of.main.place == MainThreadPlace::kP2p; });
    verdict.confidence = in_p2p > 1 ? 0.4 : 0.55;
    verdict.explanation =
        fmt::format("Rank {} {} and no rank answers; {}. No record shows which rank its peer is.", rank, here, missed);
  }
  if (findings.view.record_count < findings.view.ranks.size()) {
    verdict.confidence = 0.4;  // Who is not seen may hold up either of them.
  }
  AddVictims(findings, verdict);
  verdict.advice = {"Compare sends and receives of the two ranks for this step: count, order, tag and direction.",
                    "Record sends and receives, too: attach PyTorch's FlightRecorderHook to the pipeline's groups."};
  return verdict;
}

/// Where `rank` called last what is recorded of it.
void AddWhereItWent(const Findings& findings, int32_t rank, const char* role, const char* verb, Verdict& verdict) {
  const RankView& view = findings.view.ranks[static_cast<size_t>(rank)];
  for (const uint32_t g : view.groups) {
    const Track* track = findings.view.groups[g].TrackOf(rank);
    for (const Call& call : track->calls) {
      if (call.entry == view.newest_entry) {
        AddSite(verdict.sites,
                SiteOfCall(findings.view, *track, call, role, verb + PlainNameOf(findings.view, *track, call.entry)));
      }
    }
  }
}

/// Roots that wait in calls that all members entered: they left out the call in which others wait for them.
Verdict WentOn(const Findings& findings, const std::vector<int32_t>& ranks) {
  Verdict verdict;
  const std::string missed = Missed(findings, ranks, verdict);
  verdict.culprit_ranks = ranks;
  const Wait* wait = FirstWaitFor(findings, ranks);
  const bool is_p2p = wait != nullptr && wait->is_p2p;
  verdict.kind = is_p2p ? VerdictKind::kUnmatchedP2p : VerdictKind::kSkippedCollective;
  const bool whole = findings.view.record_count == findings.view.ranks.size();  // Else who is not seen may hold it up.
  verdict.confidence = !whole ? 0.4 : is_p2p ? 0.8 : 0.65;
  for (const int32_t rank : ranks) AddWhereItWent(findings, rank, "culprit", "went on to ", verdict);
  const bool many = ranks.size() > 1;
  verdict.explanation =
      fmt::format("{} for {}, which left {} out and continued: {} later calls are open, and all members entered them.",
                  Capital(missed), Ranks(ranks), is_p2p ? (wait->is_send ? "the receive" : "the send") : "it",
                  many ? "their" : "its");
  AddVictims(findings, verdict);
  verdict.advice = {is_p2p ? "Compare sends and receives of the two ranks for this step: count, order and direction."
                           : "Look for a branch or an early return that depends on the rank or on its data."};
  return verdict;
}

/// Fewer ranks wait in a call than continued without it: they made one call too many, or left out an earlier one.
Verdict CameAlone(const Findings& findings, const std::vector<int32_t>& waiting, const std::vector<int32_t>& others) {
  Verdict verdict;
  const std::string missed = Missed(findings, others, verdict);
  const bool whole = findings.view.record_count == findings.view.ranks.size();
  verdict.kind = VerdictKind::kExtraCollective;
  verdict.culprit_ranks = waiting;
  verdict.victim_ranks = others;
  verdict.confidence = whole ? 0.65 : 0.4;
  verdict.explanation = fmt::format(
      "{} for {}, which continued: their later calls are open, and all members entered them. {} one call more than the "
      "others, or left out an earlier one.",
      Capital(missed), Ranks(others), waiting.size() == 1 ? "It made" : "They made");
  for (const int32_t rank : others) AddWhereItWent(findings, rank, "sibling", "went on to ", verdict);
  AddVictims(findings, verdict);
  verdict.advice = {"Look for a branch, an early return or a loop bound that depends on the rank or on its data.",
                    "Run a short job with TORCH_DISTRIBUTED_DEBUG=DETAIL: it stops at the first call that differs."};
  return verdict;
}

/// Of ranks of sibling groups: how many made as many calls as `sequence`, less how many made fewer.
int MoreThatMade(const Findings& findings, uint32_t of_group, int64_t sequence) {
  int more = 0;
  const std::vector<GroupView>& groups = findings.view.groups;
  for (uint32_t g = 0; g < groups.size(); ++g) {
    if (g == of_group || groups[g].siblings != groups[of_group].siblings) continue;
    for (const Track& track : groups[g].tracks) more += track.issued_upto >= sequence ? 1 : -1;
  }
  return more;
}

/// Of roots that went on: those who are missed in one call together.
std::vector<Candidate> ExplainWentOn(const Findings& findings, const std::vector<int32_t>& weak) {
  std::vector<Candidate> candidates;
  std::map<std::pair<uint32_t, int64_t>, std::vector<int32_t>> by_call;
  for (const int32_t rank : weak) {
    const Wait* wait = FirstWaitFor(findings, {rank});
    if (wait == nullptr || !wait->sequence) {
      candidates.push_back({40, WentOn(findings, {rank})});
    } else {
      by_call[{wait->group, *wait->sequence}].push_back(rank);
    }
  }
  for (const auto& [call, missing] : by_call) {
    std::vector<int32_t> waiting;
    for (const Wait& wait : findings.waits.waits) {
      if (wait.group == call.first && wait.sequence == call.second) waiting.push_back(wait.rank);
    }
    int more = static_cast<int>(waiting.size()) - static_cast<int>(missing.size());
    if (more == 0) more = MoreThatMade(findings, call.first, call.second);
    // Where records hold what came before, a call that was never made before would have been found by that.
    candidates.push_back({40, more >= 0 ? WentOn(findings, missing) : CameAlone(findings, waiting, missing)});
    const bool is_told = more != 0 || !findings.view.ranks[static_cast<size_t>(missing.front())].active_only;
    if (!is_told) candidates.back().verdict.confidence = 0.4;
  }
  return candidates;
}

/// Whether records hold sends to any of `ranks`, or receives from it: then it may wait for one itself.
bool TradesWithRecorded(const Findings& findings, const std::vector<int32_t>& ranks) {
  for (const GroupView& group : findings.view.groups) {
    for (const Track& track : group.tracks) {
      for (const P2pCall& call : track.p2p) {
        if (Has(ranks, call.peer)) return true;
      }
    }
  }
  return false;
}

/// Gone or out of reach: all other ranks arrived, and there is no evidence of this one.
std::optional<Candidate> Unrecorded(const Findings& findings, bool has_roots) {
  std::vector<int32_t> missing;
  for (const RankView& rank : findings.view.ranks) {
    if (!rank.has_record && findings.waits.perhaps_awaited_by[static_cast<size_t>(rank.rank)] > 0) {
      missing.push_back(rank.rank);
    }
  }
  if (missing.empty()) {
    return std::nullopt;
  }
  // A rank with a record that waits for no rank and is in no operation may be the one that the ranks without a record
  // wait for.
  std::vector<int32_t> idle;
  for (const RankView& rank : findings.view.ranks) {
    if (rank.has_record && !findings.waits.Waits(rank.rank) &&
        findings.waits.has_open[static_cast<size_t>(rank.rank)] == 0) {
      idle.push_back(rank.rank);
    }
  }
  Candidate candidate;
  candidate.order = has_roots ? 60 : 50;
  Verdict& verdict = candidate.verdict;
  verdict.culprit_ranks = missing;
  const std::string missed = Missed(findings, missing, verdict);
  const RankCondition& first = ConditionOf(findings, missing.front());
  std::string who = Ranks(missing);
  who[0] = 'R';
  const bool alone = missing.size() == 1 && idle.empty() && !has_roots;
  if (alone && first.main.place == MainThreadPlace::kOutside) {
    candidate.verdict = StuckOutside(findings, missing);
    candidate.verdict.confidence = 0.85;
    return candidate;
  }
  if (first.stopped && alone) {
    candidate.verdict = StuckOutside(findings, missing);
    return candidate;
  }
  verdict.kind = VerdictKind::kPeerUnreachable;
  const Wait* wait = FirstWaitFor(findings, missing);
  const bool may_wait = TradesWithRecorded(findings, missing);
  verdict.confidence = alone && wait != nullptr && !wait->is_p2p && !may_wait ? 0.6 : 0.35;
  verdict.explanation = fmt::format(
      "{} left no dump, and {}; all other members entered it. The evidence does not show whether {} crashed, cannot be "
      "reached or is stuck{}.",
      who, missed, missing.size() == 1 ? "it" : "they",
      may_wait ? ", or waits for another rank's send or receive" : "");
  AddVictims(findings, verdict);
  verdict.advice = {fmt::format("Check whether the process of {} still runs, and read its log.", Ranks(missing))};
  return candidate;
}

}  // namespace

std::vector<Candidate> ExplainAbsence(const Findings& findings) {
  std::vector<Candidate> candidates;
  std::vector<int32_t> roots;
  std::vector<int32_t> weak;
  for (const int32_t rank : findings.waits.roots) {
    const RankCondition& condition = ConditionOf(findings, rank);
    const RankView& view = findings.view.ranks[static_cast<size_t>(rank)];
    if (!view.has_record || condition.Failed()) {
      continue;  // The dead are explained elsewhere, and victims that fell over are not roots.
    }
    (findings.waits.has_open[static_cast<size_t>(rank)] == 0 ? roots : weak).push_back(rank);
  }
  if (roots.empty()) {
    candidates = ExplainWentOn(findings, weak);
  }
  std::vector<int32_t> outside;
  std::vector<int32_t> unclear;
  for (const int32_t rank : roots) {
    const RankCondition& condition = ConditionOf(findings, rank);
    switch (condition.main.place) {
      case MainThreadPlace::kP2p: candidates.push_back({43, UnansweredP2p(findings, rank)}); break;
      case MainThreadPlace::kUnknown:
        (condition.stopped || SignOfUnrecorded(findings, rank).empty() ? outside : unclear).push_back(rank);
        break;
      default: outside.push_back(rank); break;
    }
  }
  if (!outside.empty()) {
    Verdict verdict = StuckOutside(findings, outside);
    bool in_call = false;
    for (const int32_t rank : outside) {
      const MainThreadPlace place = ConditionOf(findings, rank).main.place;
      in_call = in_call || place == MainThreadPlace::kCollective || place == MainThreadPlace::kStoreWait;
      if (place == MainThreadPlace::kDeviceSync) {
        verdict.kind = VerdictKind::kDeviceStalled;
        verdict.confidence = 0.75;
      }
    }
    if (in_call && verdict.kind == VerdictKind::kStuckOutsideCollective) {
      // It is in a call that no record of its holds, while the others wait elsewhere.
      verdict.kind = VerdictKind::kOperationMismatch;
      verdict.confidence = 0.6;
    }
    candidates.push_back({40, std::move(verdict)});
  }
  if (!unclear.empty()) {
    Verdict verdict;
    const std::string missed = Missed(findings, unclear, verdict);
    verdict.confidence = 0.4;
    verdict.explanation = fmt::format(
        "{} wait{} for {}, but {} may be in a communication that is not recorded: {}. Its stack would show it.",
        missed.empty() ? "Others" : missed, "", Ranks(unclear), unclear.size() == 1 ? "it" : "they",
        SignOfUnrecorded(findings, unclear.front()));
    if (!missed.empty()) {
      verdict.explanation = fmt::format(
          "{}, for {}. But that rank may be in a communication that is not recorded: {}. Its "
          "stack would show it.",
          Capital(missed), Ranks(unclear), SignOfUnrecorded(findings, unclear.front()));
    }
    verdict.advice = {
        fmt::format("Take Python stacks of all ranks, above all of {}: lockstep hang --job ID, or py-spy "
                    "dump --pid PID.",
                    Ranks(unclear))};
    candidates.push_back({48, std::move(verdict)});
  }
  const bool has_roots = !roots.empty() || !weak.empty();
  if (std::optional<Candidate> unrecorded = Unrecorded(findings, has_roots)) {
    candidates.push_back(std::move(*unrecorded));
  }
  return candidates;
}

}  // namespace lockstep::hang
