#include "model/step.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace lockstep::model {
namespace {

constexpr std::string_view kProfilerStep = "ProfilerStep#";

bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// The N of "ProfilerStep#N"; absent for anything else.
std::optional<int64_t> ProfilerStepNumber(std::string_view name) {
  if (name.substr(0, kProfilerStep.size()) != kProfilerStep) return std::nullopt;
  const std::string_view digits = name.substr(kProfilerStep.size());
  int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

bool MatchesStepName(std::string_view name, std::string_view step_name) {
  if (name.substr(0, step_name.size()) != step_name) return false;
  return name.size() == step_name.size() || !IsAsciiLetter(name[step_name.size()]);
}

}  // namespace

std::vector<Step> FindSteps(const RankTrace& rank, const NameTable& names, const std::string& step_name) {
  const bool profiler_steps = step_name.empty();
  // Names are classified once, so that the sweep over events tests a bit.
  std::vector<bool> is_step(names.size());
  bool any = false;
  for (uint32_t i = 0; i < names.size(); ++i) {
    const std::string_view name = names[NameId{i}];
    is_step[i] = profiler_steps ? ProfilerStepNumber(name).has_value() : MatchesStepName(name, step_name);
    any = any || is_step[i];
  }
  std::vector<Step> steps;
  if (!any) return steps;

  for (const Track& track : rank.tracks) {
    if (track.lane != Lane::kOperators) continue;
    const EventColumns& events = track.events;
    for (size_t row = 0; row < events.size(); ++row) {
      const NameId name = events.name[row];
      if (!is_step[name.value]) continue;
      const int64_t number = profiler_steps ? ProfilerStepNumber(names[name]).value_or(0) : 0;
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
      const bool same = profiler_steps ? step.number == previous.number : step.end_ns <= previous.end_ns;
      if (overlaps && same) continue;
    }
    steps[kept++] = step;
  }
  steps.resize(kept);
  if (!profiler_steps) {
    for (size_t i = 0; i < steps.size(); ++i) steps[i].number = static_cast<int64_t>(i);
  }
  return steps;
}

}  // namespace lockstep::model
