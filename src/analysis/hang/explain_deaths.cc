#include <fmt/format.h>

#include <algorithm>

#include "analysis/hang/wording.h"
#include "base/nanoseconds.h"
#include "base/signal_name.h"

namespace lockstep::hang {
namespace {

constexpr int kSigTerm = 15;

/// Of several that failed on their own account, those that failed first or plainly by force.
std::vector<int32_t> FirstToFail(const Findings& findings, std::vector<int32_t> dead) {
  const auto condition = [&](int32_t rank) -> const RankCondition& {
    return findings.conditions[static_cast<size_t>(rank)];
  };
  const auto keep = [&dead](const auto& wanted) {
    if (std::any_of(dead.begin(), dead.end(), wanted)) {
      std::erase_if(dead, [&](int32_t rank) { return !wanted(rank); });
    }
  };
  // A launcher ends the remaining ranks with SIGTERM.
  keep([&](int32_t rank) { return condition(rank).signal != kSigTerm; });
  keep([&](int32_t rank) {
    const RankCondition& of = condition(rank);
    return of.signal != 0 || of.out_of_memory || of.device_error || of.first_error != nullptr || of.absent;
  });
  keep([&](int32_t rank) { return !condition(rank).finished; });
  const bool timed =
      std::all_of(dead.begin(), dead.end(), [&](int32_t rank) { return condition(rank).first_error_ns.has_value(); });
  if (timed && dead.size() > 1) {
    int64_t first = INT64_MAX;
    for (const int32_t rank : dead) {
      first = std::min(first, *condition(rank).first_error_ns);
    }
    std::erase_if(
        dead, [&](int32_t rank) {  // Without a sign, since the times are a file's: any of them may be far off.
          return static_cast<uint64_t>(*condition(rank).first_error_ns) - static_cast<uint64_t>(first) > kSecondNs;
        });
  }
  return dead;
}

std::string HowItEnded(const RankCondition& condition) {
  std::string text;
  if (condition.out_of_memory) {
    text = "ran out of memory";
  } else if (condition.signal != 0) {
    text = "was ended by " + SignalName(condition.signal);
  } else if (condition.first_error != nullptr && condition.raised) {
    text = "raised " + condition.first_error->text.substr(0, 200);
  } else if (condition.raised) {
    text = "raised an exception";
  } else if (condition.finished) {
    text = "has ended normally";
  } else if (condition.zombie) {
    text = "has ended, and its parent has not collected its exit status";
  } else if (condition.absent) {
    text = "has ended: no process of it was found";
  } else {
    text = "is gone";
  }
  return text;
}

}  // namespace

std::vector<Candidate> ExplainDeaths(const Findings& findings) {
  std::vector<int32_t> dead;
  std::vector<int32_t> victims;
  bool resets = false;
  for (size_t i = 0; i < findings.conditions.size(); ++i) {
    const RankCondition& condition = findings.conditions[i];
    const auto rank = static_cast<int32_t>(i);
    if (condition.FailedByItself() || (condition.finished && condition.gone)) {
      dead.push_back(rank);
    } else if (condition.peer_lost) {
      victims.push_back(rank);
    }
    resets = resets || condition.peer_reset != nullptr || condition.peer_closed != nullptr;
  }
  const auto is_awaited = [&](int32_t rank) {
    return findings.waits.awaited_by[static_cast<size_t>(rank)] +
               findings.waits.perhaps_awaited_by[static_cast<size_t>(rank)] >
           0;
  };
  double confidence = 0.9;
  if (dead.size() == findings.conditions.size() && victims.empty()) {
    const bool all_ended = std::all_of(dead.begin(), dead.end(), [&](int32_t rank) {
      return findings.conditions[static_cast<size_t>(rank)].finished;
    });
    if (all_ended) {
      return {};
    }
  }
  if (!dead.empty()) {
    dead = FirstToFail(findings, dead);
    const bool matters = !victims.empty() || findings.view.record_count == 0 ||
                         std::any_of(dead.begin(), dead.end(), is_awaited) ||
                         std::any_of(dead.begin(), dead.end(), [&](int32_t rank) {
                           const RankCondition& of = findings.conditions[static_cast<size_t>(rank)];
                           return of.gone && !of.finished;
                         });
    if (!matters) {
      return {};
    }
  } else if (resets) {
    // Peers lost a connection. A rank that left neither dump nor error has died if others wait for it, or if it is
    // the only such rank.
    std::vector<int32_t> silent;
    for (const RankView& rank : findings.view.ranks) {
      const RankCondition& condition = findings.conditions[static_cast<size_t>(rank.rank)];
      if (!rank.has_record && !condition.peer_lost && !condition.aborted &&
          condition.main.place == MainThreadPlace::kUnknown) {
        silent.push_back(rank.rank);
        if (is_awaited(rank.rank) || findings.view.record_count == 0) {
          dead.push_back(rank.rank);
        }
      }
    }
    dead = dead.empty() ? silent : dead;
    confidence = dead.size() == 1 ? 0.85 : 0.45;
  }
  if (dead.empty()) {
    return {};
  }
  Candidate candidate;
  candidate.order = 30;
  Verdict& verdict = candidate.verdict;
  verdict.kind = VerdictKind::kCrash;
  verdict.culprit_ranks = dead;
  verdict.confidence = confidence;
  std::vector<int32_t> held = findings.waits.HeldUpBy(dead);
  held.insert(held.end(), victims.begin(), victims.end());
  std::sort(held.begin(), held.end());
  held.erase(std::unique(held.begin(), held.end()), held.end());
  verdict.victim_ranks = Without(held, dead);
  const RankCondition& first = findings.conditions[static_cast<size_t>(dead.front())];
  std::string who = Ranks(dead);
  who[0] = 'R';
  verdict.explanation =
      fmt::format("{} {}", who,
                  resets && !first.Failed() && first.signal == 0 ? "has ended: it left no dump, and its peers lost "
                                                                   "their connections to it"
                                                                 : HowItEnded(first));
  verdict.explanation += verdict.victim_ranks.empty()
                             ? "."
                             : fmt::format("; {} {} for it or failed because of it.", Ranks(verdict.victim_ranks),
                                           verdict.victim_ranks.size() == 1 ? "waits" : "wait");
  for (const int32_t rank : dead) {
    const RankView& view = findings.view.ranks[static_cast<size_t>(rank)];
    const RankCondition& condition = findings.conditions[static_cast<size_t>(rank)];
    if (condition.first_error != nullptr && condition.first_error->frame.line > 0) {
      AddSite(verdict.sites, SiteOfError(*condition.first_error, rank, "culprit",
                                         condition.raised ? "raised an exception" : "failed"));
    } else if (condition.main.place != MainThreadPlace::kUnknown && condition.main.line > 0) {
      AddSite(verdict.sites, SiteOfMain(condition, rank, "culprit", "is in"));
    }
    if (view.has_record && view.newest_entry != kNone) {
      for (const uint32_t g : view.groups) {
        const Track* track = findings.view.groups[g].TrackOf(rank);
        if (!track->calls.empty() && track->calls.back().entry == view.newest_entry) {
          AddSite(verdict.sites,
                  SiteOfEntry(findings.view, *track, view.newest_entry, "culprit", "made its last recorded call"));
        }
      }
    }
  }
  for (const Wait& wait : findings.waits.waits) {
    const auto is_dead = [&](int32_t rank) { return Has(dead, rank); };
    if (std::any_of(wait.waits_for.begin(), wait.waits_for.end(), is_dead) ||
        std::any_of(wait.perhaps_waits.begin(), wait.perhaps_waits.end(), is_dead)) {
      const std::string operation = PlainNameOf(findings.view, *wait.track, wait.entry);
      if (verdict.group.empty()) {
        FillGroup(findings.view, wait.group, verdict);
        verdict.sequence = wait.sequence;
        verdict.operation = operation;
      }
      AddSite(verdict.sites, SiteOfEntry(findings.view, *wait.track, wait.entry, "victim", "waits in " + operation));
    }
  }
  if (first.out_of_memory) {
    verdict.advice.push_back(
        "Lower the memory use or raise the limit: batch size, activation checkpointing, the cgroup's limit.");
  } else if (first.signal == 9 || first.absent || confidence < 0.9) {
    verdict.advice.push_back(
        fmt::format("Look at the node of {}: dmesg for the OOM killer, the scheduler's and the "
                    "launcher's logs for who ended the process.",
                    Ranks(dead)));
  } else {
    verdict.advice.push_back(fmt::format("Read the log of {} from its first error on.", Ranks(dead)));
  }
  verdict.advice.push_back("Start jobs with torchrun, which ends all ranks when one fails, and set a group timeout.");
  return {candidate};
}

}  // namespace lockstep::hang
