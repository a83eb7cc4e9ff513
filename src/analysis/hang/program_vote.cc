#include "analysis/hang/program_vote.h"

#include <algorithm>
#include <unordered_map>

namespace lockstep::hang {
namespace {

constexpr size_t kNewest = 192;
constexpr size_t kContext = 4;  ///< Calls before a fork that must agree, and that must be new to the rank together.

uint64_t Hash(uint64_t a, uint64_t b) {
  uint64_t hash = (a ^ (b + 0x9E3779B97F4A7C15ULL)) * 0xBF58476D1CE4E5B9ULL;
  return hash ^ (hash >> 29);
}

/// The calls from `last - kContext + 1` to `last` and one after them, by group class and signature, whatever their
/// numbers.
uint64_t Situation(const std::vector<Step>& steps, size_t last, const Step& next) {
  uint64_t hash = 0;
  const auto add = [&hash](const Step& step) {
    hash = Hash(hash, (static_cast<uint64_t>(step.siblings) << 32) | step.signature);
  };
  for (size_t i = last + 1 - std::min(last + 1, kContext); i <= last; ++i) add(steps[i]);
  add(next);
  return hash;
}

/// The calls before a point, with their numbers: who shares them did the same work until there.
uint64_t Past(const std::vector<Step>& steps, size_t end) {
  uint64_t hash = 0;
  for (size_t i = end - std::min(end, kContext - 1); i <= end; ++i) {
    hash = Hash(Hash(hash, (static_cast<uint64_t>(steps[i].siblings) << 32) | steps[i].signature),
                static_cast<uint64_t>(steps[i].sequence));
  }
  return hash;
}

/// Groups that lack members' records may look different from their siblings, so an equal call from the same place in
/// the code counts as the same call.
bool IsOneCall(const JobView& view, const Step& a, const Step& b) {
  return a.signature == b.signature && a.site == b.site &&
         (a.siblings == b.siblings || view.groups[a.group].description == view.groups[b.group].description);
}

struct Next {
  Step step;
  std::vector<int32_t> ranks;
};

Divergence Classify(const std::vector<Step>& own, size_t at, const std::vector<Step>& others, size_t there) {
  // at and there: the last call that both made.
  const auto in = [](const std::vector<Step>& steps, size_t from, const Step& wanted, bool same_site,
                     size_t end = SIZE_MAX) {
    for (size_t i = from; i < std::min({steps.size(), from + 8, end}); ++i) {
      const bool site = steps[i].site == wanted.site || steps[i].site == 0 || wanted.site == 0;
      if (steps[i].siblings == wanted.siblings && steps[i].signature == wanted.signature && (site || !same_site)) {
        return true;
      }
    }
    return false;
  };
  const Step& next = own[at + 1];
  const Step& common = others[there + 1];
  const bool swapped = own.size() > at + 2 && others.size() > there + 2 && own[at + 2].siblings == common.siblings &&
                       own[at + 2].signature == common.signature && others[there + 2].siblings == next.siblings &&
                       others[there + 2].signature == next.signature && next.siblings != common.siblings;
  if (swapped) {
    return Divergence::kReorders;
  }
  // The call after the common one: from the other ranks, or, if no rank got further, from the rank's own earlier
  // rounds.
  bool later = in(others, there + 2, next, true);
  bool elsewhere = in(others, there + 2, next, false);
  for (size_t i = at; i-- > 0;) {
    const bool sites = own[i].site != 0 && common.site != 0;
    if (own[i].siblings == common.siblings && own[i].signature == common.signature &&
        (!sites || own[i].site == common.site)) {
      later = later || in(own, i + 1, next, true, at + 1);
      elsewhere = elsewhere || in(own, i + 1, next, false, at + 1);
      if (sites) break;  // Else it may be another of several like it.
    }
  }
  if (in(own, at + 2, common, true) && !later) {
    return Divergence::kAdds;
  }
  if (later) {
    return Divergence::kSkips;
  }
  // The same call from a new place comes before its turn: the order is another one.
  return elsewhere && next.siblings != common.siblings ? Divergence::kReorders : Divergence::kAdds;
}

}  // namespace

std::vector<Step> StepsOf(const JobView& view, int32_t rank, size_t newest) {
  std::vector<Step> steps;
  for (const uint32_t g : view.ranks[static_cast<size_t>(rank)].groups) {
    const Track* track = view.groups[g].TrackOf(rank);
    const size_t from = track->calls.size() > newest ? track->calls.size() - newest : 0;
    for (size_t i = from; i < track->calls.size(); ++i) {
      const Call& call = track->calls[i];
      steps.push_back({call.entry, g, view.groups[g].siblings, call.sequence, call.signature, call.site});
    }
  }
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.entry < b.entry; });
  if (steps.size() > newest) {
    steps.erase(steps.begin(), steps.end() - static_cast<ptrdiff_t>(newest));
  }
  return steps;
}

std::vector<ProgramFork> VoteOnProgram(const JobView& view) {
  std::vector<std::vector<Step>> steps(view.ranks.size());
  std::unordered_map<uint64_t, std::vector<Next>> after;
  for (size_t r = 0; r < view.ranks.size(); ++r) {
    if (!view.ranks[r].has_record || view.ranks[r].active_only) {
      continue;
    }
    steps[r] = StepsOf(view, view.ranks[r].rank, kNewest);
    for (size_t i = 0; i + 1 < steps[r].size(); ++i) {
      std::vector<Next>& nexts = after[Past(steps[r], i)];
      const auto known =
          std::find_if(nexts.begin(), nexts.end(), [&](const Next& next) { return next.step.Same(steps[r][i + 1]); });
      if (known == nexts.end()) {
        nexts.push_back({steps[r][i + 1], {view.ranks[r].rank}});
      } else {
        known->ranks.push_back(view.ranks[r].rank);
      }
    }
  }
  std::vector<ProgramFork> forks;
  for (size_t r = 0; r < view.ranks.size(); ++r) {
    std::unordered_map<uint64_t, uint32_t> seen;
    for (size_t i = 0; i + 1 < steps[r].size(); ++i) {
      const bool is_new = seen[Situation(steps[r], i, steps[r][i + 1])]++ == 0;
      const std::vector<Next>& nexts = after[Past(steps[r], i)];
      if (!is_new || i + 1 < kContext || nexts.size() < 2) {
        continue;
      }
      const Next* most = nullptr;
      size_t votes = 0;
      size_t own_votes = 0;
      for (const Next& next : nexts) {
        votes += next.ranks.size();
        const bool is_own = IsOneCall(view, next.step, steps[r][i + 1]);
        if (is_own) own_votes += next.ranks.size();
        if (!is_own && (most == nullptr || next.ranks.size() > most->ranks.size())) most = &next;
      }
      if (most == nullptr) continue;
      const bool outvoted = most->ranks.size() * 2 > votes && most->ranks.size() > 1;
      const bool by_history = most->ranks.size() == own_votes && seen.contains(Situation(steps[r], i, most->step));
      if (!outvoted && !by_history) continue;
      ProgramFork fork;
      fork.rank = view.ranks[r].rank;
      fork.before = steps[r][i];
      fork.own = steps[r][i + 1];
      fork.common = most->step;
      fork.others = most->ranks;
      fork.by_history = !outvoted;
      const auto other = static_cast<size_t>(most->ranks.front());
      const auto there = std::find_if(steps[other].begin(), steps[other].end(),
                                      [&](const Step& step) { return step.Same(fork.before); });
      if (there != steps[other].end()) {
        fork.kind = Classify(steps[r], i, steps[other], static_cast<size_t>(there - steps[other].begin()));
      }
      forks.push_back(std::move(fork));
      break;
    }
  }
  return forks;
}

}  // namespace lockstep::hang
