#include <fmt/format.h>

#include <algorithm>

#include "analysis/hang/wording.h"

namespace lockstep::hang {
namespace {

struct CallOf {
  const Track* track = nullptr;
  const Call* call = nullptr;
};

CallOf FindCallOf(const Findings& findings, uint32_t group, int32_t rank, int64_t sequence) {
  const Track* track = findings.view.groups[group].TrackOf(rank);
  return {track, track == nullptr ? nullptr : FindCall(*track, sequence)};
}

CallOf FirstCallOf(const Findings& findings, const Mismatch& mismatch, const std::vector<int32_t>& ranks) {
  CallOf first;
  for (const int32_t rank : ranks) {
    const CallOf found = FindCallOf(findings, mismatch.group, rank, mismatch.sequence);
    if (found.call != nullptr && (first.call == nullptr || (first.call->site == 0 && found.call->site != 0))) {
      first = found;
    }
  }
  return first;
}

/// Where no member of the group called the common thing and has a record, a sibling group's member did.
CallOf SiblingCall(const Findings& findings, const Mismatch& mismatch) {
  for (const int32_t rank : mismatch.siblings) {
    for (uint32_t g = 0; g < findings.view.groups.size(); ++g) {
      if (findings.view.groups[g].siblings == findings.view.groups[mismatch.group].siblings) {
        const CallOf found = FindCallOf(findings, g, rank, mismatch.sequence);
        if (found.call != nullptr) {
          return found;
        }
      }
    }
  }
  return {};
}

std::string At(const Findings& findings, const CallOf& call) {
  const std::string place = call.call == nullptr ? "" : Place(findings.view, call.call->site);
  return place.empty() ? "" : " at " + place;
}

std::string Describe(const Findings& findings, const CallOf& call) {
  return call.call == nullptr ? "nothing that is recorded" : DescribeCall(findings.view, *call.track, call.call->entry);
}

void AddSitesOfCalls(const Findings& findings, const Mismatch& mismatch, const std::vector<int32_t>& ranks,
                     const char* role, Verdict& verdict) {
  for (const int32_t rank : ranks) {
    const CallOf found = FindCallOf(findings, mismatch.group, rank, mismatch.sequence);
    if (found.call != nullptr) {
      AddSite(verdict.sites, SiteOfCall(findings.view, *found.track, *found.call, role,
                                        fmt::format("called {} #{}", Describe(findings, found), mismatch.sequence)));
    }
  }
}

std::string Sentence(const Findings& findings, const Mismatch& mismatch, const Verdict& verdict, const CallOf& deviant,
                     const CallOf& common) {
  const std::string group = GroupText(findings.view.groups[mismatch.group]);
  const std::string who = Ranks(verdict.culprit_ranks);
  const std::string others =
      mismatch.others.empty() ? Ranks(mismatch.siblings) + " of sibling groups" : Ranks(mismatch.others);
  const std::string ours = Describe(findings, deviant) + At(findings, deviant);
  const std::string theirs = Describe(findings, common) + At(findings, common);
  std::string siblings;
  if (!mismatch.siblings.empty() && !mismatch.others.empty()) {
    siblings = fmt::format(" So did {} in sibling groups.", Ranks(mismatch.siblings));
  }
  std::string text = who;
  text[0] = 'R';
  switch (mismatch.kind) {
    case VerdictKind::kSkippedCollective:
      return fmt::format(
          "{} skipped {} (group {}, #{}), which {} called. Instead {} called {}, which the others call "
          "later.{}",
          text, theirs, group, mismatch.sequence, others, who, ours, siblings);
    case VerdictKind::kExtraCollective:
      return fmt::format("{} alone called {} as #{} of group {}; {} called {}.{}", text, ours, mismatch.sequence, group,
                         others, theirs, siblings);
    case VerdictKind::kWrongOrder:
      return fmt::format("{} called {} before {} in group {}; {} called them the other way round (#{} and #{}).{}",
                         text, ours, theirs, group, others, mismatch.sequence, mismatch.sequence + 1, siblings);
    case VerdictKind::kSizeMismatch:
    case VerdictKind::kDtypeMismatch:
      return fmt::format("{} called {} as #{} of group {}, where {} called {}.{}", text, ours, mismatch.sequence, group,
                         others, theirs, siblings);
    default:
      return fmt::format("{} called {} as #{} of group {}, where {} called {}: different operations meet.{}", text,
                         ours, mismatch.sequence, group, others, theirs, siblings);
  }
}

std::string TieSentence(const Findings& findings, const Mismatch& mismatch) {
  std::string text = fmt::format("Members of group {} called different things as #{}: ",
                                 GroupText(findings.view.groups[mismatch.group]), mismatch.sequence);
  for (size_t i = 0; i < mismatch.parties.size(); ++i) {
    const CallOf call = FirstCallOf(findings, mismatch, mismatch.parties[i]);
    text += fmt::format("{}{} {}{}", i == 0 ? "" : "; ", Ranks(mismatch.parties[i]), Describe(findings, call),
                        At(findings, call));
  }
  return text + ". Each side has as many ranks, so the records alone do not show which of them is wrong.";
}

std::vector<std::string> AdviceFor(VerdictKind kind, const Verdict& verdict, const std::string& place) {
  const std::string at = place.empty() ? "" : " near " + place;
  const std::string who = Ranks(verdict.culprit_ranks);
  switch (kind) {
    case VerdictKind::kSkippedCollective:
    case VerdictKind::kExtraCollective:
      return {fmt::format(
                  "Look{} for a branch, an early return or a loop bound that depends on the rank or on its data.", at),
              "Run a short job with TORCH_DISTRIBUTED_DEBUG=DETAIL: it stops at the first call that differs."};
    case VerdictKind::kWrongOrder:
      return {
          fmt::format("Make all ranks issue these collectives in one order{}; look for iteration over a set or a dict "
                      "that is filled differently on {}.",
                      at, who)};
    case VerdictKind::kSizeMismatch:
      return {
          fmt::format("Print the tensor's shape on all ranks before the call{}; uneven last batches and ragged "
                      "inputs need padding or drop_last=True.",
                      at)};
    case VerdictKind::kDtypeMismatch:
      return {fmt::format(
          "Compare dtypes on all ranks before the call{}; look for autocast or a cast that only {} makes.", at, who)};
    default: return {fmt::format("Compare the code paths of {} with the others'{}.", who, at)};
  }
}

}  // namespace

std::vector<Candidate> ExplainMismatches(const Findings& findings) {
  std::vector<Candidate> candidates;
  std::vector<char> used(findings.mismatches.size(), 0);
  for (size_t i = 0; i < findings.mismatches.size(); ++i) {
    if (used[i] != 0) {
      continue;
    }
    Mismatch mismatch = findings.mismatches[i];
    // The same fault in sibling groups is one fault.
    for (size_t j = i + 1; j < findings.mismatches.size(); ++j) {
      const Mismatch& other = findings.mismatches[j];
      if (findings.view.groups[other.group].siblings == findings.view.groups[mismatch.group].siblings &&
          other.sequence == mismatch.sequence && other.kind == mismatch.kind && other.margin > 0 &&
          mismatch.margin > 0) {
        used[j] = 1;
        mismatch.deviants.insert(mismatch.deviants.end(), other.deviants.begin(), other.deviants.end());
      }
    }
    std::sort(mismatch.deviants.begin(), mismatch.deviants.end());
    Candidate candidate;
    Verdict& verdict = candidate.verdict;
    verdict.kind = mismatch.kind;
    FillGroup(findings.view, mismatch.group, verdict);
    verdict.sequence = mismatch.sequence;
    CallOf common = FirstCallOf(findings, mismatch, mismatch.others);
    if (common.call == nullptr) {
      common = SiblingCall(findings, mismatch);
    }
    if (mismatch.margin <= 0) {
      candidate.order = 45;
      verdict.confidence = 0.4;
      if (common.call != nullptr) {
        verdict.operation = PlainNameOf(findings.view, *common.track, common.call->entry);
      }
      verdict.victim_ranks = verdict.group_ranks;
      verdict.explanation = TieSentence(findings, mismatch);
      for (const std::vector<int32_t>& party : mismatch.parties) {
        AddSitesOfCalls(findings, mismatch, party, "sibling", verdict);
      }
      verdict.advice = {"Look at the call sites of both sides: which of them belongs to this step?"};
      candidates.push_back(std::move(candidate));
      continue;
    }
    candidate.order = 10;
    verdict.culprit_ranks = mismatch.deviants;
    const CallOf deviant = FirstCallOf(findings, mismatch, mismatch.deviants);
    const CallOf shown = common.call != nullptr ? common : deviant;
    verdict.operation = PlainNameOf(findings.view, *shown.track, shown.call->entry);
    verdict.confidence = mismatch.by_history ? 0.7 : mismatch.margin >= 2 ? 0.95 : 0.85;
    std::vector<int32_t> victims = findings.waits.HeldUpBy(mismatch.deviants);
    victims.insert(victims.end(), verdict.group_ranks.begin(), verdict.group_ranks.end());
    std::sort(victims.begin(), victims.end());
    victims.erase(std::unique(victims.begin(), victims.end()), victims.end());
    verdict.victim_ranks = Without(victims, verdict.culprit_ranks);
    verdict.explanation = Sentence(findings, mismatch, verdict, deviant, common);
    if (mismatch.kind == VerdictKind::kSkippedCollective && mismatch.deviant_goes_on_as_others_later &&
        deviant.call != nullptr && deviant.call->site == 0) {
      // A rank that waits in its first differing call shows nothing more about the order; the place of that call would.
      verdict.confidence = std::min(verdict.confidence, 0.7);
      verdict.explanation +=
          " The record does not show where it made that call: it may have called the two in another order.";
    }
    AddSitesOfCalls(findings, mismatch, mismatch.deviants, "culprit", verdict);
    AddSitesOfCalls(findings, mismatch, mismatch.others, "victim", verdict);
    verdict.advice =
        AdviceFor(mismatch.kind, verdict, deviant.call == nullptr ? "" : Place(findings.view, deviant.call->site));
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace lockstep::hang
