#include "analysis/frontier/groups.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/frontier/over_time.h"
#include "base/median.h"

namespace lockstep::frontier {

using model::RankStages;
using model::Stage;
using model::StageSpan;
using model::StepStages;

namespace {

constexpr model::WaitedFor kUnknownPeer = {.is_pairwise = true};

/// By group, by rank; empty where the rank never waits for the group.
using Waits = std::vector<std::vector<std::pair<size_t, int64_t>>>;

Waits SumWaits(const std::vector<RankStages>& ranks, size_t group_count) {
  Waits waits(group_count);
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (const StepStages& step : ranks[i].steps) {
      for (const StageSpan& span : step.spans) {
        if (span.stage != Stage::kCommunication || span.waited_for.group == 0) continue;
        auto& of_group = waits[span.waited_for.group - 1U];
        if (of_group.empty() || of_group.back().first != i) of_group.emplace_back(i, 0);
        of_group.back().second += span.duration_ns;
      }
    }
  }
  return waits;
}

}  // namespace

std::vector<std::string> NumberGroups(std::vector<RankStages>* ranks) {
  std::map<std::string, uint16_t> numbers;
  std::vector<std::string> names;
  for (RankStages& rank : *ranks) {
    std::vector<model::WaitedFor> anew(rank.groups.size() + 1);
    for (size_t i = 0; i < rank.groups.size(); ++i) {
      auto place = numbers.find(rank.groups[i]);
      if (place == numbers.end() && names.size() < UINT16_MAX) {
        names.push_back(rank.groups[i]);
        place = numbers.emplace(rank.groups[i], static_cast<uint16_t>(names.size())).first;
      }
      anew[i + 1] = place == numbers.end() ? kUnknownPeer : model::WaitedFor{.group = place->second};
    }
    for (StepStages& step : rank.steps) {
      for (StageSpan& span : step.spans) {
        if (span.waited_for.group == 0) continue;
        const model::WaitedFor to = span.waited_for.group < anew.size() ? anew[span.waited_for.group] : kUnknownPeer;
        span.waited_for.group = to.group;
        span.waited_for.is_pairwise = span.waited_for.is_pairwise || to.is_pairwise;
      }
    }
  }
  return names;
}

std::vector<Group> AccountGroups(const SharedSteps& steps, const std::vector<RankStages>& ranks,
                                 const std::vector<std::string>& names, std::vector<Accounting>* parts) {
  std::vector<std::vector<int64_t>> unmet_ns(parts->size());  // By part, by rank: the least of its groups.
  for (size_t part = 0; part < parts->size(); ++part) unmet_ns[part].assign(ranks.size(), (*parts)[part].unmet_ns);
  std::vector<Group> groups;
  const Waits waits = SumWaits(ranks, names.size());
  for (size_t number = 0; number < names.size(); ++number) {
    if (waits[number].size() < 2) continue;
    Group group;
    group.name = names[number].substr(0, names[number].find('['));
    for (const auto& [rank_idx, wait_ns] : waits[number]) {
      group.members.push_back(rank_idx);
      group.wait_ns.push_back(wait_ns);
    }
    const Rounds rounds = steps.CutRounds(group.members, static_cast<uint16_t>(number + 1));
    const std::vector<Accounting> own = AccountParts(rounds, kMostWindows);
    group.is_pairwise = rounds.pairwise_count > 0;
    group.account = Whole(rounds, own);
    group.account.steps = {};  // Of thousands of groups they are many.
    for (size_t part = 0; part < own.size(); ++part) {
      TakeCosts(own[part], group.members, &(*parts)[part]);
      for (const size_t i : group.members) unmet_ns[part][i] = std::min(unmet_ns[part][i], own[part].unmet_ns);
    }
    groups.push_back(std::move(group));
  }
  for (size_t part = 0; part < parts->size(); ++part) (*parts)[part].unmet_ns = LowerMedian(&unmet_ns[part]);
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return std::tie(a.members.front(), a.name) < std::tie(b.members.front(), b.name);
  });
  return groups;
}

}  // namespace lockstep::frontier
