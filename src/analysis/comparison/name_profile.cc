#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

#include "analysis/analysis_result.h"
#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "analysis/comparison/run_profile.h"
#include "analysis/name_rows.h"
#include "analysis/rank_context.h"
#include "analysis/rank_map.h"
#include "model/step_name.h"

namespace lockstep::comparison {
namespace {

constexpr size_t kNoStep = SIZE_MAX;
constexpr size_t kClassCount = 3;

/// One rank's events of one name.
struct RankName {
  NameId name;
  EventClass kind = EventClass::kKernel;
  int64_t total_ns = 0;
  std::map<size_t, std::pair<uint64_t, int64_t>> steps;  ///< Count and time by step.
};

/// RunProfile's, for the way to where the events are.
struct WantedSteps {
  bool has_steps = false;
  std::vector<std::pair<int32_t, int64_t>> steps;
};

/// Finds the step that an instant of a rank's own clock lies in.
class StepFinder {
 public:
  StepFinder(const analysis::RankContext& context, const WantedSteps& profile)
      : steps_(context.steps), whole_(!profile.has_steps && !profile.steps.empty()) {
    const int32_t window = context.trace().window;
    for (const model::Step& step : steps_) {
      const auto found = std::lower_bound(profile.steps.begin(), profile.steps.end(), std::pair(window, step.number));
      const bool known = found != profile.steps.end() && *found == std::pair(window, step.number);
      index_.push_back(known ? static_cast<size_t>(found - profile.steps.begin()) : kNoStep);
    }
  }
  size_t operator()(int64_t time_ns) {
    if (whole_) return 0;
    const auto inside = [&](size_t i) {
      return i < steps_.size() && steps_[i].start_ns <= time_ns && time_ns < steps_[i].end_ns;
    };
    if (inside(hint_)) return index_[hint_];
    const auto after = std::upper_bound(steps_.begin(), steps_.end(), time_ns,
                                        [](int64_t time, const model::Step& step) { return time < step.start_ns; });
    if (after == steps_.begin()) return kNoStep;
    const auto i = static_cast<size_t>(after - steps_.begin()) - 1;
    if (!inside(i)) return kNoStep;
    hint_ = i;
    return index_[i];
  }

 private:
  const std::vector<model::Step>& steps_;
  std::vector<size_t> index_;
  bool whole_;
  size_t hint_ = 0;
};

std::optional<EventClass> ClassOf(model::Lane lane) {
  switch (lane) {
    case model::Lane::kDevice: return EventClass::kKernel;
    case model::Lane::kOperators: return EventClass::kOperator;
    case model::Lane::kRuntime: return EventClass::kRuntime;
    default: return std::nullopt;
  }
}

std::vector<RankName> NamesOfRank(const analysis::RankContext& context, const WantedSteps& profile) {
  const model::RankTrace& trace = context.trace();
  analysis::RowsByKey<RankName> rows(context.names().size() * kClassCount);
  StepFinder step_of(context, profile);
  for (size_t t = 0; t < trace.tracks.size(); ++t) {
    const model::Track& track = trace.tracks[t];
    const auto kind = ClassOf(track.lane);
    if (!kind) continue;
    for (size_t i = 0; i < track.events.size(); ++i) {
      int64_t time_ns = track.events.start_ns[i];
      if (*kind == EventClass::kKernel && context.launches[t][i].found()) {
        // What a step launched belongs to it, however late the device gets to it.
        const analysis::LaunchRef launch = context.launches[t][i];
        time_ns = trace.tracks[launch.track].events.start_ns[launch.row];
      }
      const size_t step = step_of(time_ns);
      if (step == kNoStep) continue;
      const NameId name = track.events.name[i];
      RankName& row = rows[name.value * kClassCount + static_cast<size_t>(*kind)];
      row.name = name;
      row.kind = *kind;
      row.total_ns = analysis::AddSaturating(row.total_ns, track.events.duration_ns[i]);
      auto& [count, spent_ns] = row.steps[step];
      ++count;
      spent_ns = analysis::AddSaturating(spent_ns, track.events.duration_ns[i]);
    }
  }
  return std::move(rows.rows());
}

struct NamesPass {
  static constexpr std::string_view kName = "comparison.names";
  using Args = WantedSteps;
  using Partial = std::vector<RankName>;
  static Partial Map(const analysis::RunContext& shared, size_t rank_index, const Args& args) {
    return NamesOfRank(analysis::MakeRankContext(shared, rank_index), args);
  }
};

/// Rows of all ranks by class and text.
class NameSums {
 public:
  explicit NameSums(size_t step_count) : step_count_(step_count) {}
  void Add(const std::vector<RankName>& rows, int32_t rank, const model::NameTable& names) {
    for (const RankName& row : rows) {
      std::string text = NameOfEvent(names[row.name]);
      NameProfile& sum = sums_[{row.kind, text}];
      if (sum.step_ns.empty()) {
        sum.kind = row.kind;
        sum.name = std::move(text);
        sum.step_ns.assign(step_count_, 0);
        sum.step_count.assign(step_count_, 0);
      }
      sum.total_ns = analysis::AddSaturating(sum.total_ns, row.total_ns);
      for (const auto& [step, spent] : row.steps) {
        sum.count += spent.first;
        sum.step_count[step] += spent.first;
        sum.step_ns[step] = analysis::AddSaturating(sum.step_ns[step], spent.second);
      }
      int64_t& of_rank = ranks_[{row.kind, sum.name}][rank];
      of_rank = analysis::AddSaturating(of_rank, row.total_ns);
    }
  }
  std::vector<NameProfile> Take() {
    std::vector<NameProfile> rows;
    for (auto& [key, sum] : sums_) {
      for (const auto& entry : ranks_[key]) sum.rank_ns.push_back(entry);
      rows.push_back(std::move(sum));
    }
    return rows;
  }

 private:
  using Key = std::pair<EventClass, std::string>;
  size_t step_count_;
  std::map<Key, NameProfile> sums_;
  std::map<Key, std::map<int32_t, int64_t>> ranks_;
};

}  // namespace

void AddRankPasses(analysis::RankPasses* passes) { passes->Add<NamesPass>(); }

std::string NameOfEvent(std::string_view name) {
  static constexpr std::string_view kStep = "ProfilerStep#";
  if (name.starts_with(kStep)) return std::string(kStep);
  const auto step = model::ReadNumberedStep(name);
  return std::string(step ? step->prefix : name);
}

void AddNames(const model::Run& run, const analysis::AnalysisOptions& analysis, RunProfile* profile) {
  if (profile->steps.empty()) return;
  analysis::RunContext shared;
  shared.run = &run;
  shared.options = analysis;
  const auto by_rank = analysis::MapRanks<NamesPass>(shared, {profile->has_steps, profile->steps});
  NameSums sums(profile->steps.size());
  for (size_t i = 0; i < by_rank.size(); ++i) sums.Add(by_rank[i], run.ranks[i].rank.value, run.names);
  profile->names = sums.Take();
}

void AddCollectives(const model::Run& run, const analysis::AnalysisResult& result, RunProfile* profile) {
  // The step of an instance: that of its first member's window of time.
  std::map<size_t, std::vector<const analysis::BreakdownRow*>> windows;  // by rank index, ascending start
  for (const analysis::BreakdownRow& row : result.Get<analysis::Breakdown>().steps)
    windows[row.rank_index].push_back(&row);
  const auto step_of = [&](const analysis::CollectiveInstance& instance) -> size_t {
    if (!profile->has_steps) return profile->steps.empty() ? kNoStep : 0;
    if (instance.members.empty()) return kNoStep;
    const analysis::CollectiveMember& member = instance.members.front();
    const auto& rows = windows[member.rank_index];
    const auto after = std::upper_bound(rows.begin(), rows.end(), member.trace_start_ns,
                                        [](int64_t time, const auto* row) { return time < row->start_ns; });
    if (after == rows.begin()) return kNoStep;
    const analysis::BreakdownRow& row = **(after - 1);
    const std::pair key(run.ranks[row.rank_index].window, row.step_number.value_or(0));
    const auto found = std::lower_bound(profile->steps.begin(), profile->steps.end(), key);
    return found != profile->steps.end() && *found == key ? static_cast<size_t>(found - profile->steps.begin())
                                                          : kNoStep;
  };
  std::map<std::pair<std::string, std::optional<int64_t>>, CollectiveProfile> rows;
  for (const analysis::CollectiveInstance& instance : result.Get<analysis::Collectives>().instances) {
    const size_t step = step_of(instance);
    if (step == kNoStep) continue;
    CollectiveProfile& row = rows[{instance.name, instance.bytes}];
    if (row.count++ == 0) {
      row.name = instance.name;
      row.bytes = instance.bytes;
      row.step_transfer_ns.assign(profile->steps.size(), 0);
      row.step_wait_ns.assign(profile->steps.size(), 0);
    }
    if (instance.transfer_ns) ++row.timed_count;
    row.step_transfer_ns[step] += static_cast<double>(instance.transfer_ns.value_or(0));
    for (const analysis::CollectiveMember& member : instance.members) {
      row.step_wait_ns[step] += static_cast<double>(member.wait_ns.value_or(0));
    }
    if (instance.busbw_bytes_per_s) row.busbw_bytes_per_s.push_back(*instance.busbw_bytes_per_s);
  }
  for (auto& entry : rows) profile->collectives.push_back(std::move(entry.second));
}

}  // namespace lockstep::comparison
