#include "analysis/what_if/straggler_study.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/pass.h"
#include "base/median.h"

namespace lockstep::analysis {
namespace {

// A table of some thousand groups would take hours and answer nothing.
constexpr size_t kMaxGroups = 4096;
constexpr double kMaxRelaxations = 2e11;
// The study's share of workers that a few slow machines are.
constexpr size_t kSlowWorkerPercent = 3;

int64_t Rounded(double value) { return std::llround(value); }

int64_t MeanOf(const std::vector<int64_t>& values) {
  double sum = 0;
  for (const int64_t value : values) sum += static_cast<double>(value);
  return Rounded(sum / static_cast<double>(values.size()));
}

/// The study's worlds: delays are out of all of them.
class Study {
 public:
  Study(const model::OperationTrace& trace, const OperationGraph& graph, const std::vector<int64_t>& ideal_ns)
      : trace_(trace), graph_(graph), ideal_ns_(ideal_ns) {}

  double Mean(std::vector<int64_t> work_ns) const {
    return MeanStep(graph_.StepTimes({.work_ns = std::move(work_ns), .delayed = false}));
  }

  /// Mean step time of the ideal world with the observed work of those that `takes` names.
  template <typename Takes>
  double WithObserved(const Takes& takes) const {
    return Mean(Mix(ideal_ns_, graph_.observed().work_ns, takes));
  }
  /// Mean step time of what was observed with the ideal work of those that `takes` names.
  template <typename Takes>
  double WithIdeal(const Takes& takes) const {
    return Mean(Mix(graph_.observed().work_ns, ideal_ns_, takes));
  }

  /// Slowdown by each value of `group_of`, over all values there are; none where there are too many.
  template <typename Group, typename GroupOf>
  std::vector<std::pair<Group, double>> Shares(double ideal_mean_ns, const GroupOf& group_of) const {
    std::set<Group> groups;
    for (const model::Operation& operation : trace_.operations) groups.insert(group_of(operation));
    std::vector<std::pair<Group, double>> shares;
    const double cost = static_cast<double>(groups.size()) * static_cast<double>(graph_.graph().edge_count());
    if (groups.size() > kMaxGroups || cost > kMaxRelaxations) return shares;
    for (const Group& group : groups) {
      const double mean_ns =
          WithObserved([&](const model::Operation& operation) { return group_of(operation) == group; });
      shares.emplace_back(group, ideal_mean_ns > 0 ? mean_ns / ideal_mean_ns : 1);
    }
    return shares;
  }

 private:
  template <typename Takes>
  std::vector<int64_t> Mix(std::vector<int64_t> work_ns, const std::vector<int64_t>& other_ns,
                           const Takes& takes) const {
    for (size_t i = 0; i < work_ns.size(); ++i) {
      if (takes(trace_.operations[i])) work_ns[i] = other_ns[i];
    }
    return work_ns;
  }

  const model::OperationTrace& trace_;
  const OperationGraph& graph_;
  const std::vector<int64_t>& ideal_ns_;
};

/// A worker is as slow as the lesser of its stage's and its data-parallel rank's slowdown: both must be slow for it to
/// be the one. Slowest first, then the lower rank.
std::vector<int32_t> SlowWorkers(const model::OperationTrace& trace,
                                 const std::vector<std::pair<int32_t, double>>& by_stage,
                                 const std::vector<std::pair<int32_t, double>>& by_data_rank) {
  const std::map<int32_t, double> stages(by_stage.begin(), by_stage.end());
  const std::map<int32_t, double> data_ranks(by_data_rank.begin(), by_data_rank.end());
  if (stages.empty() || data_ranks.empty()) return {};
  std::map<int32_t, double> scores;
  for (const model::Operation& operation : trace.operations) {
    scores.emplace(operation.rank, std::min(stages.at(operation.stage), data_ranks.at(operation.data_rank)));
  }
  std::vector<std::pair<int32_t, double>> workers(scores.begin(), scores.end());
  std::stable_sort(workers.begin(), workers.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  workers.resize((workers.size() * kSlowWorkerPercent + 99) / 100);
  std::vector<int32_t> ranks;
  for (const auto& worker : workers) ranks.push_back(worker.first);
  return ranks;
}

}  // namespace

std::string StudyOperation(const std::string& type, OperationKind kind) {
  switch (kind) {
    case OperationKind::kForwardSend:
    case OperationKind::kForwardReceive: return "forward-pp-comm";
    case OperationKind::kBackwardSend:
    case OperationKind::kBackwardReceive: return "backward-pp-comm";
    default: return type;
  }
}

std::vector<int64_t> IdealWork(const model::OperationTrace& trace, const OperationGraph& graph) {
  const std::vector<int64_t>& observed_ns = graph.observed().work_ns;
  std::vector<std::vector<int64_t>> by_type(trace.types.size());
  for (size_t i = 0; i < observed_ns.size(); ++i) {
    if (graph.schedule().takes_part[i]) by_type[trace.operations[i].type].push_back(observed_ns[i]);
  }
  std::vector<int64_t> ideal_of(trace.types.size(), 0);
  for (size_t type = 0; type < by_type.size(); ++type) {
    if (by_type[type].empty()) continue;
    ideal_of[type] =
        IsCommunication(KindOfType(trace.types[type])) ? lockstep::Median(&by_type[type]) : MeanOf(by_type[type]);
  }
  std::vector<int64_t> ideal_ns(observed_ns.size());
  for (size_t i = 0; i < ideal_ns.size(); ++i) ideal_ns[i] = ideal_of[trace.operations[i].type];
  return ideal_ns;
}

StragglerStudy ComputeStudy(const model::OperationTrace& trace, const OperationGraph& graph,
                            const std::vector<int64_t>& ideal_ns, std::vector<WhatIfStep>* steps) {
  const Study study(trace, graph, ideal_ns);
  const auto no_delay_times = graph.StepTimes({.work_ns = graph.observed().work_ns, .delayed = false});
  const auto ideal_times = graph.StepTimes({.work_ns = ideal_ns, .delayed = false});
  for (size_t s = 0; s < steps->size(); ++s) {
    (*steps)[s].simulated_ns = no_delay_times[s];
    (*steps)[s].ideal_ns = ideal_times[s];
  }
  const double observed = MeanStep(graph.observed_ns());
  const double no_delay = MeanStep(no_delay_times);
  const double ideal = MeanStep(ideal_times);

  StragglerStudy result;
  result.observed_ns = Rounded(observed);
  result.no_delay_ns = Rounded(no_delay);
  result.ideal_ns = Rounded(ideal);
  if (no_delay > 0) result.launch_slowdown = observed / no_delay;
  if (ideal > 0) result.slowdown = no_delay / ideal;

  const auto by_stage = study.Shares<int32_t>(ideal, [](const model::Operation& o) { return o.stage; });
  const auto by_data_rank = study.Shares<int32_t>(ideal, [](const model::Operation& o) { return o.data_rank; });
  std::vector<std::string> names;
  for (const std::string& type : trace.types) names.push_back(StudyOperation(type, KindOfType(type)));
  const auto by_name = study.Shares<std::string>(ideal, [&](const model::Operation& o) { return names[o.type]; });
  for (const auto& [stage, slowdown] : by_stage) result.by_stage.push_back({std::to_string(stage), slowdown});
  for (const auto& [rank, slowdown] : by_data_rank) result.by_data_rank.push_back({std::to_string(rank), slowdown});
  for (const auto& [name, slowdown] : by_name) result.by_operation.push_back({name, slowdown});

  result.slow_workers = SlowWorkers(trace, by_stage, by_data_rank);
  const std::set<int32_t> slow(result.slow_workers.begin(), result.slow_workers.end());
  for (const model::Operation& operation : trace.operations) {
    result.last_stage = std::max(result.last_stage, operation.stage);
  }
  const double workers_fixed = study.WithIdeal([&](const model::Operation& o) { return slow.count(o.rank) > 0; });
  const double stage_fixed = study.WithIdeal([&](const model::Operation& o) { return o.stage == result.last_stage; });
  result.slow_workers_fixed_ns = Rounded(workers_fixed);
  result.last_stage_fixed_ns = Rounded(stage_fixed);
  if (no_delay != ideal) {
    if (!slow.empty()) result.slow_workers_ratio = (no_delay - workers_fixed) / (no_delay - ideal);
    result.last_stage_ratio = (no_delay - stage_fixed) / (no_delay - ideal);
  }
  return result;
}

Result<WhatIf> SimulateOperations(const model::OperationTrace& trace, model::Ledger* ledger, double speedup) {
  if (trace.source != model::OperationSource::kStudy) {
    return Error{ErrorCode::kFailedPrecondition, "holds no communication, so nothing tells what waits for what"};
  }
  ASSIGN_OR_RETURN(const OperationGraph graph, OperationGraph::Create(trace, ledger));
  WhatIf what_if;
  for (size_t s = 0; s < graph.steps().size(); ++s) {
    what_if.steps.push_back({.step = graph.steps()[s], .observed_ns = graph.observed_ns()[s]});
  }
  const std::vector<int64_t> ideal_ns = IdealWork(trace, graph);
  what_if.study = ComputeStudy(trace, graph, ideal_ns, &what_if.steps);
  // Delays are unexplained: mostly a worker's wait for something that the schedule does not contain, which would
  // disappear if the others became faster. If they were kept, every change would seem to gain nothing.
  what_if.observed_step_ns = what_if.study->observed_ns;
  what_if.simulated_step_ns = what_if.study->no_delay_ns;
  what_if.replayed_step_ns = Rounded(MeanStep(graph.StepTimes(graph.observed())));
  double error = 0;
  for (const WhatIfStep& step : what_if.steps) {
    if (step.observed_ns <= 0) continue;
    error +=
        std::abs(static_cast<double>(step.simulated_ns - step.observed_ns)) / static_cast<double>(step.observed_ns);
  }
  if (!what_if.steps.empty()) what_if.error_ratio = error / static_cast<double>(what_if.steps.size());
  what_if.levers = OperationLevers(trace, graph, ideal_ns, *what_if.study, speedup);
  RankLevers(&what_if);
  return what_if;
}

}  // namespace lockstep::analysis
