#include "present/export/flame/stacks.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "model/step.h"

namespace lockstep::flame {
namespace {

bool Selected(const std::vector<std::pair<int64_t, int64_t>>& ranges, int64_t number) {
  return ranges.empty() || std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
           return range.first <= number && number <= range.second;
         });
}

Error Nothing(const char* flag, const char* advice) {
  return Error{.code = ErrorCode::kInvalidArgument,
               .message = fmt::format("{}: none of these is in the traces ({})", flag, advice)};
}

}  // namespace

Status CheckSelection(const model::Run& run, const analysis::AnalysisOptions& analysis, const Options& options) {
  RETURN_IF_ERROR(Choose(run, analysis.step_name, options));
  return {};
}

bool Chosen::OneRank::Contains(int64_t time_ns) const {
  return all_time || std::any_of(windows.begin(), windows.end(), [&](const Window& window) {
           return window.start_ns <= time_ns && time_ns < window.end_ns;
         });
}

std::vector<Thread> FindThreads(const model::RankTrace& trace) {
  std::map<std::pair<int64_t, int64_t>, Thread> threads;
  for (size_t t = 0; t < trace.tracks.size(); ++t) {
    const model::Track& track = trace.tracks[t];
    const bool of_thread = track.lane == model::Lane::kPython || track.lane == model::Lane::kOperators ||
                           track.lane == model::Lane::kRuntime;
    if (!of_thread || track.events.empty()) continue;
    Thread& thread = threads[{track.process_id, track.thread_id}];
    thread.process_id = track.process_id;
    thread.thread_id = track.thread_id;
    if (track.thread_name.value != 0) thread.name = track.thread_name;
    if (track.lane == model::Lane::kPython) thread.python = &track;
    if (track.lane == model::Lane::kOperators) thread.operators = &track;
    if (track.lane == model::Lane::kRuntime) {
      thread.runtime = &track;
      thread.runtime_idx = t;
    }
  }
  std::vector<Thread> sorted;
  for (const auto& [key, thread] : threads) sorted.push_back(thread);
  return sorted;
}

Result<Chosen> Choose(const model::Run& run, const std::string& step_name, const Options& options) {
  Chosen chosen;
  bool any_step = false;
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    if (!Selected(options.ranks, run.ranks[i].rank.value)) continue;
    Chosen::OneRank& rank = chosen.ranks.emplace_back();
    rank.rank_index = i;
    if (options.steps.empty()) continue;
    rank.all_time = false;
    for (const model::Step& step : model::FindSteps(run.ranks[i], run.names, step_name)) {
      if (!Selected(options.steps, step.number)) continue;
      const int64_t from = rank.windows.empty() ? step.start_ns : std::max(step.start_ns, rank.windows.back().end_ns);
      if (from < step.end_ns) rank.windows.push_back({from, step.end_ns});
      any_step = true;
    }
  }
  if (chosen.ranks.empty()) return Nothing("--ranks", "lockstep analyze shows which there are");
  if (!options.steps.empty() && !any_step)
    return Nothing("--steps", "lockstep analyze --section steps shows which there are");
  return chosen;
}

std::vector<Launched> FindLaunched(const analysis::RankContext& context) {
  std::vector<Launched> launched;
  const model::RankTrace& trace = context.trace();
  for (size_t t = 0; t < trace.tracks.size(); ++t) {
    if (trace.tracks[t].lane != model::Lane::kDevice) continue;
    const model::EventColumns& events = trace.tracks[t].events;
    for (size_t row = 0; row < events.size(); ++row) {
      const analysis::LaunchRef& launch = context.launches[t][row];
      launched.push_back({launch.track, launch.row, events.name[row], events.start_ns[row], events.duration_ns[row]});
    }
  }
  std::stable_sort(launched.begin(), launched.end(), [](const Launched& a, const Launched& b) {
    return std::tie(a.track, a.row, a.start_ns) < std::tie(b.track, b.row, b.start_ns);
  });
  return launched;
}

}  // namespace lockstep::flame
