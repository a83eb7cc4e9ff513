#include <fmt/format.h>

#include <algorithm>

#include "analysis/hang/wording.h"

namespace lockstep::hang {
namespace {

constexpr const char* kRemedy = "Ask RAS again a minute later: lockstep hang --job ID, or ncclras -v -f json.";

const RankCondition* FindCondition(const Findings& findings, int32_t rank) {
  const bool known = rank >= 0 && static_cast<size_t>(rank) < findings.conditions.size();
  return known ? &findings.conditions[static_cast<size_t>(rank)] : nullptr;
}

bool RunsForSure(const Findings& findings, int32_t rank) {
  const RankCondition* condition = FindCondition(findings, rank);
  if (condition == nullptr || condition->gone || condition->zombie || condition->stopped) return false;
  const evidence::RankEvidence* of = findings.view.ranks[static_cast<size_t>(rank)].evidence;
  return of != nullptr && of->liveness == evidence::Liveness::kRunning;
}

/// The job's nodes were looked at, and it was on none of them.
bool WasNotFound(const Findings& findings, int32_t rank) {
  return std::any_of(
      findings.job->missing.begin(), findings.job->missing.end(),
      [rank](const evidence::MissingEvidence& one) { return one.what == "process" && one.rank == rank; });
}

/// Those whose end or halt is seen without RAS are explained by that.
bool IsExplained(const Findings& findings, int32_t rank) {
  const RankCondition* condition = FindCondition(findings, rank);
  return condition != nullptr && (condition->Failed() || condition->stopped || condition->unreachable);
}

/// How long the counts have stood still, as far as the answers tell.
std::string InAnswers(const RasLag& lag) {
  if (!lag.StandsStill()) return "in the only answer";
  return fmt::format("in {} answers{}", lag.answers,
                     lag.over_ns > 0 ? fmt::format(" within {}", Seconds(lag.over_ns)) : "");
}

std::string LagText(const RasLag& lag) {
  const std::string whose = lag.is_mapped ? "" : " (its ranks, not the job's)";
  if (lag.differs) {
    return fmt::format("{} of communicator {}{} launched other operations than the rest, {} in all, {}.",
                       Capital(Ranks(lag.odd)), lag.communicator, whose, lag.most, InAnswers(lag));
  }
  return fmt::format("{} of communicator {}{} launched {} of {}, where others launched {}, {}.",
                     Capital(Ranks(lag.late)), lag.communicator, whose,
                     lag.late.size() == 1 ? std::to_string(lag.least) : fmt::format("down to {}", lag.least),
                     lag.operation, lag.most, InAnswers(lag));
}

std::string LossText(const RasLoss& loss) {
  if (loss.rank < 0) {
    return fmt::format("RAS reports process {} on {} as dead, without its rank.", loss.pid, loss.host);
  }
  const std::string place = loss.pid > 0 ? fmt::format(" (process {} on {})", loss.pid, loss.host) : "";
  const std::string whose =
      loss.is_mapped ? "" : fmt::format(" of communicator {} (its rank, not the job's)", loss.communicator);
  return fmt::format("Rank {}{}{} {}.", loss.rank, whose, place,
                     loss.is_dead ? "is dead according to RAS: it did not answer for a minute" : "does not answer RAS");
}

/// Ranks that RAS has lost and nothing else explains.
std::optional<Candidate> Lost(const Findings& findings) {
  std::vector<int32_t> lost;
  std::vector<int32_t> peers;
  bool any_dead = false;
  bool all_run = true;
  bool none_found = true;
  const RasLoss* nameless = nullptr;
  for (const RasLoss& loss : findings.ras.losses) {
    if (!loss.is_mapped) {
      nameless = nameless == nullptr ? &loss : nameless;
      continue;
    }
    if (IsExplained(findings, loss.rank)) continue;
    lost.push_back(loss.rank);
    peers.insert(peers.end(), loss.peers.begin(), loss.peers.end());
    any_dead = any_dead || loss.is_dead;
    all_run = all_run && RunsForSure(findings, loss.rank);
    none_found = none_found && WasNotFound(findings, loss.rank);
  }
  if (lost.empty() && nameless == nullptr) return std::nullopt;
  Candidate candidate;
  candidate.order = 47;
  candidate.by_ras = true;
  Verdict& verdict = candidate.verdict;
  if (lost.empty()) {
    verdict.kind = VerdictKind::kCrash;
    verdict.confidence = 0.4;  // Somebody; who is not known.
    verdict.explanation = LossText(*nameless);
    verdict.advice = {fmt::format("Find the rank of process {} on {} in the launcher's log, and read its log.",
                                  nameless->pid, nameless->host),
                      "Ask RAS for all ranks: ncclras -v -f json, and give its answer, too."};
    return candidate;
  }
  std::sort(lost.begin(), lost.end());
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  verdict.culprit_ranks = lost;
  verdict.victim_ranks = Without(peers, lost);
  const char* verb = lost.size() == 1 ? "does" : "do";
  if (all_run) {
    verdict.kind = VerdictKind::kPeerUnreachable;
    verdict.confidence = 0.6;
    verdict.explanation = fmt::format(
        "{} {} not answer NCCL's RAS over the network, though the process runs: the network between the "
        "nodes, or its threads do not get to run.",
        Capital(Ranks(lost)), verb);
  } else if (none_found) {
    verdict.kind = VerdictKind::kCrash;
    verdict.confidence = 0.75;
    verdict.explanation =
        fmt::format("{} {} not answer NCCL's RAS, and no process of {} was found: {} ended.", Capital(Ranks(lost)),
                    verb, lost.size() == 1 ? "it" : "them", lost.size() == 1 ? "it has" : "they have");
  } else {
    verdict.kind = any_dead ? VerdictKind::kCrash : VerdictKind::kPeerUnreachable;
    verdict.confidence = any_dead ? 0.6 : 0.5;
    verdict.explanation = fmt::format(
        "{} {} not answer NCCL's RAS{}: the process has ended, is stopped, or its node "
        "cannot be reached.",
        Capital(Ranks(lost)), verb, any_dead ? " for a minute or longer" : "");
  }
  verdict.advice = {fmt::format("Look whether the process of {} is there, and at its node and log.", Ranks(lost)),
                    "Check links and pairs of nodes: lockstep doctor --host A,B."};
  return candidate;
}

/// Counts that differ. RAS counts launches and not completions: it tells which ranks are behind, but not why.
std::optional<Candidate> Behind(const Findings& findings) {
  if (findings.ras.lags.empty()) return std::nullopt;
  const RasLag* shown = &findings.ras.lags.front();
  for (const RasLag& lag : findings.ras.lags) {
    const auto worth = [](const RasLag& one) { return std::pair(one.StandsStill(), one.is_mapped); };
    if (worth(lag) > worth(*shown)) shown = &lag;
  }
  Candidate candidate;
  candidate.order = 48;
  candidate.by_ras = true;
  Verdict& verdict = candidate.verdict;
  verdict.explanation = "By NCCL's RAS: " + LagText(*shown);
  const std::vector<int32_t>& late = findings.ras.laggards;
  if (!shown->StandsStill()) {
    verdict.confidence = 0.3;
    verdict.explanation += " One answer cannot distinguish a slow job from a stuck one.";
    verdict.culprit_ranks = shown->is_mapped ? shown->late : std::vector<int32_t>();
    verdict.kind = VerdictKind::kStuckOutsideCollective;
    verdict.advice = {kRemedy};
    return candidate;
  }
  if (!shown->is_mapped) {
    verdict.confidence = 0.4;
    verdict.explanation += " Its counts do not change; which ranks of the job these are is not known.";
    verdict.advice = {"Collect stacks and dumps of these ranks: lockstep hang --job ID."};
    return candidate;
  }
  const size_t few = shown->differs ? shown->odd.size() : late.size();
  const bool minority = few > 0 && few * 2 < shown->members.size() + (shown->differs ? 0 : 1);
  verdict.kind = shown->differs ? VerdictKind::kOperationMismatch : VerdictKind::kStuckOutsideCollective;
  verdict.culprit_ranks = shown->differs ? shown->odd : late;
  // A slow step looks alike for as long as it lasts.
  const bool is_short = shown->over_ns > 0 && shown->over_ns < findings.patience_ns;
  const bool is_calm = findings.view.record_count > 0 && !IsHung(findings);
  verdict.confidence = minority && !is_short && !is_calm ? 0.55 : 0.4;
  verdict.victim_ranks = Without(shown->members, verdict.culprit_ranks);
  verdict.explanation += shown->differs ? " Its counts do not change: the ranks are in different calls."
                         : late.empty()
                             ? " Its counts do not change, and its late ranks wait in another communicator."
                             : " Its counts do not change: the others wait in a call that these ranks have not made.";
  verdict.advice = {"See what these ranks do instead: their stacks, by lockstep hang --job ID or py-spy dump.",
                    "Set TORCH_FR_BUFFER_SIZE=2000, so that dumps tell the collective and the line."};
  return candidate;
}

/// Where the flight recorder and RAS tell of the same ranks and say different ones are behind.
std::string RecorderSaysOtherwise(const Findings& findings, const RasLag& lag) {
  if (!lag.is_mapped || !lag.StandsStill() || lag.differs) return {};
  const GroupView* same = nullptr;
  for (const GroupView& group : findings.view.groups) {
    if (group.members != lag.members) continue;
    if (same != nullptr) return {};  // Which of them has this communicator is not told.
    same = &group;
  }
  if (same == nullptr || same->tracks.size() != same->members.size()) return {};
  int64_t most = 0;
  for (const Track& track : same->tracks) {
    if (!track.issued_exact) return {};
    most = std::max(most, track.issued_upto);
  }
  std::vector<int32_t> behind;
  for (const Track& track : same->tracks) {
    if (track.issued_upto < most) behind.push_back(track.rank);
  }
  if (behind == lag.late) return {};
  return behind.empty()
             ? fmt::format(" The flight recorder shows no rank of group {} behind.", GroupText(*same))
             : fmt::format(" The flight recorder shows {} of group {} behind.", Ranks(behind), GroupText(*same));
}

/// Kinds whose culprits have launched less than the others.
bool ComesShort(VerdictKind kind) {
  return kind == VerdictKind::kSkippedCollective || kind == VerdictKind::kStuckOutsideCollective ||
         kind == VerdictKind::kCrash || kind == VerdictKind::kStraggler;
}

bool Shares(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  return std::any_of(a.begin(), a.end(), [&](int32_t rank) { return Has(b, rank); });
}

/// By the verdict no rank waits for a missing one, and yet some communicator makes no progress.
bool SpeaksAgainst(const Findings& findings, const Verdict& verdict, const RasLag& lag) {
  if (!lag.StandsStill() || verdict.kind == VerdictKind::kUndecidable) return false;
  if (verdict.kind == VerdictKind::kHealthy) return true;
  const std::vector<int32_t>& behind = findings.ras.laggards;
  return lag.is_mapped && ComesShort(verdict.kind) && !behind.empty() && !Shares(behind, verdict.culprit_ranks);
}

}  // namespace

std::vector<Candidate> ExplainRas(const Findings& findings) {
  std::vector<Candidate> candidates;
  if (std::optional<Candidate> lost = Lost(findings)) candidates.push_back(*std::move(lost));
  if (std::optional<Candidate> behind = Behind(findings)) candidates.push_back(*std::move(behind));
  return candidates;
}

void WeighRas(const Findings& findings, Candidate& candidate) {
  Verdict& verdict = candidate.verdict;
  if (verdict.kind == VerdictKind::kUndecidable) return;
  bool speaks_for = false;
  bool speaks_against = false;
  for (const RasLag& lag : findings.ras.lags) {
    speaks_against = speaks_against || SpeaksAgainst(findings, verdict, lag);
    speaks_for = speaks_for || (lag.is_mapped && lag.StandsStill() && ComesShort(verdict.kind) &&
                                findings.ras.laggards == verdict.culprit_ranks);
  }
  if (verdict.kind == VerdictKind::kCrash || verdict.kind == VerdictKind::kPeerUnreachable) {
    for (const RasLoss& loss : findings.ras.losses) {
      speaks_for = speaks_for || (loss.is_mapped && Has(verdict.culprit_ranks, loss.rank));
    }
  }
  if (speaks_against) {
    verdict.confidence = std::max(0.5, verdict.confidence - 0.3);
  } else if (speaks_for && !candidate.by_ras) {
    verdict.confidence = std::max(verdict.confidence, std::min(0.97, verdict.confidence + 0.05));
  }
}

void AddRas(const Findings& findings, Diagnosis& diagnosis) {
  const auto add = [&](std::vector<int32_t> ranks, const std::string& file, std::string fact, bool contradicts) {
    diagnosis.evidence.push_back({"ras", std::move(ranks), file, std::move(fact), contradicts});
  };
  for (const RasLag& lag : findings.ras.lags) {
    const std::string otherwise = RecorderSaysOtherwise(findings, lag);
    add(!lag.is_mapped ? std::vector<int32_t>()
        : lag.differs  ? lag.odd
                       : lag.late,
        lag.source, LagText(lag) + otherwise, SpeaksAgainst(findings, diagnosis.verdict, lag) || !otherwise.empty());
  }
  for (const RasLoss& loss : findings.ras.losses) {
    const bool against = diagnosis.verdict.kind == VerdictKind::kHealthy ||
                         (loss.is_dead && loss.is_mapped && RunsForSure(findings, loss.rank) &&
                          diagnosis.verdict.kind != VerdictKind::kPeerUnreachable);
    add(loss.is_mapped ? std::vector<int32_t>{loss.rank} : std::vector<int32_t>(), loss.source, LossText(loss),
        against);
  }
  if (findings.ras.lags.empty() && findings.ras.losses.empty() && !findings.job->ras.empty()) {
    add({}, findings.job->ras.back().source,
        "RAS reports nothing wrong, which proves nothing: it counts launches, and it reports OK for jobs that hang.",
        false);
  }
}

}  // namespace lockstep::hang
