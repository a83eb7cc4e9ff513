#include "present/export/timeline/rank_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "analysis/rank_context.h"
#include "analysis/step_windows.h"

namespace lockstep::timeline {
namespace {

template <typename Number>
bool InRanges(const std::vector<std::pair<Number, Number>>& ranges, Number value) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const auto& range) { return range.first <= value && value <= range.second; });
}

/// "0-3, 7" of distinct sorted numbers; cut after eight ranges.
std::string Listed(const std::set<int64_t>& numbers) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const int64_t number : numbers) {
    if (!ranges.empty() && ranges.back().second + 1 == number) {
      ranges.back().second = number;
    } else {
      ranges.emplace_back(number, number);
    }
  }
  std::string text;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (i == 8) return text + ", ...";
    const auto& [first, last] = ranges[i];
    text += (i == 0 ? "" : ", ") + (first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
  }
  return text;
}

template <typename Ranges>
Status CheckRanges(const Ranges& ranges, const std::set<int64_t>& there, const char* what, const char* none) {
  for (const auto& [first, last] : ranges) {
    const auto found = there.lower_bound(first);
    if (found != there.end() && *found <= last) continue;
    const std::string asked = first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .message = there.empty()
                       ? fmt::format("no {} {}: {}", what, asked, none)
                       : fmt::format("no {} {}: there {} {} {}", what, asked, there.size() == 1 ? "is only" : "are",
                                     there.size() == 1 ? what : fmt::format("{}s", what), Listed(there))};
  }
  return {};
}

bool Covers(const std::vector<std::pair<int64_t, int64_t>>& stretches, int64_t time_ns) {
  const auto behind = std::upper_bound(stretches.begin(), stretches.end(), time_ns,
                                       [](int64_t time, const auto& stretch) { return time < stretch.first; });
  // Stretches may overlap: look at all that begin before; there are few.
  return std::any_of(stretches.begin(), behind, [&](const auto& stretch) { return time_ns < stretch.second; });
}

std::vector<std::pair<int64_t, int64_t>> Stretches(const std::vector<model::Step>& steps,
                                                   const std::vector<std::pair<int64_t, int64_t>>& wanted) {
  std::vector<std::pair<int64_t, int64_t>> stretches;
  for (const model::Step& step : steps) {
    if (!InRanges(wanted, step.number)) continue;
    if (!stretches.empty() && step.start_ns <= stretches.back().second && step.start_ns >= stretches.back().first) {
      stretches.back().second = std::max(stretches.back().second, step.end_ns);
    } else {
      stretches.emplace_back(step.start_ns, step.end_ns);
    }
  }
  return stretches;
}

}  // namespace

Result<RunSelection> RunSelection::Resolve(const model::Run& run, const Options& options) {
  RunSelection resolved(run, options.selection);
  const Selection& wanted = options.selection;
  resolved.ranks_.resize(run.ranks.size());

  std::set<int64_t> ranks_there;
  for (const model::RankTrace& trace : run.ranks) ranks_there.insert(trace.rank.value);
  RETURN_IF_ERROR(CheckRanges(wanted.ranks, ranks_there, "rank", "nothing was read"));

  analysis::RunContext shared;
  shared.run = &run;
  shared.options.step_name = options.step_name;
  shared.is_communication.resize(run.names.size());
  std::set<int64_t> steps_there;
  std::optional<int64_t> first_ns;
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    const model::RankTrace& trace = run.ranks[i];
    if (trace.first_ns) first_ns = std::min(first_ns.value_or(INT64_MAX), trace.clock.ToRun(*trace.first_ns));
    RankSelection& rank = resolved.ranks_[i];
    rank.selected = wanted.ranks.empty() || InRanges(wanted.ranks, trace.rank.value);
    if (!rank.selected) continue;
    rank.steps = model::FindSteps(trace, run.names, options.step_name);
    for (const model::Step& step : rank.steps) steps_there.insert(step.number);
    if (wanted.steps.empty()) continue;
    rank.host_ns = Stretches(rank.steps, wanted.steps);
    rank.device_ns = Stretches(analysis::StepWindows(analysis::MakeRankContext(shared, i)), wanted.steps);
    std::erase_if(rank.steps, [&](const model::Step& step) { return !InRanges(wanted.steps, step.number); });
  }
  RETURN_IF_ERROR(CheckRanges(wanted.steps, steps_there, "step", "these traces mark no steps (try --step-name)"));
  if (wanted.from_ns) resolved.from_ns_ = first_ns.value_or(0) + *wanted.from_ns;
  if (wanted.to_ns) resolved.to_ns_ = first_ns.value_or(0) + *wanted.to_ns;
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    const model::ClockMap& clock = run.ranks[i].clock;
    std::erase_if(resolved.ranks_[i].steps, [&](const model::Step& step) {
      const int64_t start_ns = clock.ToRun(step.start_ns);
      return start_ns < resolved.from_ns_ || start_ns >= resolved.to_ns_;
    });
  }
  return resolved;
}

bool RunSelection::HasLane(model::Lane lane) const {
  const std::vector<model::Lane>& lanes = selection_.lanes;
  return lanes.empty() || std::find(lanes.begin(), lanes.end(), lane) != lanes.end();
}

bool RunSelection::Contains(size_t rank_index, model::Lane lane, int64_t start_ns) const {
  if (!HasLane(lane)) return false;
  const RankSelection& rank = ranks_[rank_index];
  const bool on_device = lane == model::Lane::kDevice || lane == model::Lane::kDeviceAnnotation;
  return InStretches(rank_index, on_device ? rank.device_ns : rank.host_ns, start_ns);
}

bool RunSelection::ContainsTime(size_t rank_index, int64_t time_ns) const {
  return InStretches(rank_index, ranks_[rank_index].host_ns, time_ns);
}

bool RunSelection::InStretches(size_t rank_index, const std::optional<RankSelection::Stretches>& stretches,
                               int64_t start_ns) const {
  if (!ranks_[rank_index].selected) return false;
  if (stretches && !Covers(*stretches, start_ns)) return false;
  if (!selection_.from_ns && !selection_.to_ns) return true;
  const int64_t run_ns = run_->ranks[rank_index].clock.ToRun(start_ns);
  return run_ns >= from_ns_ && run_ns < to_ns_;
}

}  // namespace lockstep::timeline
