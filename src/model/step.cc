#include "model/step.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/ascii.h"
#include "model/step_name.h"

namespace lockstep::model {
namespace {

bool MatchesStepName(std::string_view name, std::string_view step_name) {
  if (name.substr(0, step_name.size()) != step_name) return false;
  return name.size() == step_name.size() || !IsLetter(name[step_name.size()]);
}

int64_t NumberOf(std::string_view name) {
  const auto step = ReadProfilerStep(name);
  return step ? step->number : ReadNumberedStep(name).value_or(NumberedStep{}).number;
}

bool UsesAny(const RankTrace& rank, const std::vector<bool>& is_step) {
  return std::any_of(rank.tracks.begin(), rank.tracks.end(), [&](const Track& track) {
    return track.lane == Lane::kOperators && std::any_of(track.events.name.begin(), track.events.name.end(),
                                                         [&](NameId name) { return is_step[name.value]; });
  });
}

/// Ranges that count steps in words of their own. Of several kinds ("iteration 1" in "step 3") the one that covers most
/// time is meant, which is the outer one.
bool FindNumberedNames(const RankTrace& rank, const NameTable& names, std::vector<bool>* is_step) {
  std::map<std::string_view, int64_t> time_by_prefix;
  std::vector<std::string_view> prefixes(names.size());
  bool any = false;
  for (uint32_t i = 0; i < names.size(); ++i) {
    if (const auto step = ReadNumberedStep(names[NameId{i}])) prefixes[i] = step->prefix;
    any = any || !prefixes[i].empty();
  }
  if (!any) return false;
  for (const Track& track : rank.tracks) {
    if (track.lane != Lane::kOperators) continue;
    for (size_t row = 0; row < track.events.size(); ++row) {
      const std::string_view prefix = prefixes[track.events.name[row].value];
      if (!prefix.empty()) time_by_prefix[prefix] += track.events.duration_ns[row] / 1024;  // Sums stay far inside.
    }
  }
  const auto longest = std::max_element(time_by_prefix.begin(), time_by_prefix.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  if (longest == time_by_prefix.end()) return false;
  for (size_t i = 0; i < prefixes.size(); ++i) (*is_step)[i] = prefixes[i] == longest->first;
  return true;
}

}  // namespace

std::vector<Step> FindSteps(const RankTrace& rank, const NameTable& names, const std::string& step_name) {
  const bool numbered = step_name.empty();
  // Names are classified once, so that the sweep over events tests a bit.
  std::vector<bool> is_step(names.size());
  bool any = false;
  for (uint32_t i = 0; i < names.size(); ++i) {
    const std::string_view name = names[NameId{i}];
    is_step[i] = numbered ? ReadProfilerStep(name).has_value() : MatchesStepName(name, step_name);
    any = any || is_step[i];
  }
  if (numbered && !(any && UsesAny(rank, is_step))) any = FindNumberedNames(rank, names, &is_step);
  std::vector<Step> steps;
  if (!any) return steps;

  for (const Track& track : rank.tracks) {
    if (track.lane != Lane::kOperators) continue;
    const EventColumns& events = track.events;
    for (size_t row = 0; row < events.size(); ++row) {
      const NameId name = events.name[row];
      if (!is_step[name.value]) continue;
      const int64_t number = numbered ? NumberOf(names[name]) : 0;
      steps.push_back({number, events.start_ns[row], events.end_ns(row)});
    }
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
    if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
    return a.number < b.number;
  });
  // A step seen twice (two categories, two threads, a nested call of the same name) counts once: the outer range stays.
  size_t kept = 0;
  for (const Step& step : steps) {
    if (kept > 0) {
      const Step& previous = steps[kept - 1];
      const bool overlaps = step.start_ns < previous.end_ns || step.start_ns == previous.start_ns;
      const bool same = numbered ? step.number == previous.number : step.end_ns <= previous.end_ns;
      if (overlaps && same) continue;
    }
    steps[kept++] = step;
  }
  steps.resize(kept);
  if (!numbered) {
    for (size_t i = 0; i < steps.size(); ++i) steps[i].number = static_cast<int64_t>(i);
  }
  return steps;
}

}  // namespace lockstep::model
