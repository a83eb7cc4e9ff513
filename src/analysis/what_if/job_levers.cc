#include "analysis/what_if/job_levers.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "analysis/job_graph/job_graph.h"
#include "analysis/parallelism/pipeline.h"
#include "analysis/pass.h"
#include "analysis/what_if/step_simulator.h"

namespace lockstep::analysis {
namespace {

/// The first window's steps that most of its ranks have.
std::vector<JobStepKey> UsualSteps(std::vector<JobStepKey> keys) {
  const auto count = [](const JobStepKey& key) {
    return key.parts.size() - static_cast<size_t>(std::count(key.parts.begin(), key.parts.end(), SIZE_MAX));
  };
  size_t most = 0;
  for (const JobStepKey& key : keys) {
    if (key.window == keys.front().window) most = std::max(most, count(key));
  }
  const int32_t first = keys.empty() ? 0 : keys.front().window;
  std::erase_if(keys, [&](const JobStepKey& key) { return key.window != first || count(key) < most; });
  return keys;
}

/// One step with nothing changed and with every lever; absent when its graph cannot be joined.
struct StepOutcome {
  WhatIfStep step;
  std::vector<int64_t> lever_ns;
};

/// Ranks of the first window by pipeline stage.
std::map<uint32_t, std::vector<size_t>> StagesOf(const model::Run& run, const Pipelines& pipelines) {
  std::map<uint32_t, std::vector<size_t>> stages;
  for (const PipelineRow& row : pipelines.rows) {
    if (run.ranks[row.rank_index].window == run.ranks.front().window) stages[row.stage].push_back(row.rank_index);
  }
  return stages;
}

}  // namespace

WhatIf SimulateJob(const model::Run& run, const Collectives& collectives, const std::vector<RankGraphs>& by_rank_index,
                   uint32_t thread_count, model::Ledger* ledger, const LeverOptions& options) {
  WhatIf what_if;
  if (options.only && options.only->empty()) return what_if;
  const std::vector<JobStepKey> keys = UsualSteps(ListJobSteps(run, by_rank_index));
  if (keys.empty()) return what_if;
  std::vector<size_t> ranks;
  for (size_t i = 0; i < keys.front().parts.size(); ++i) {
    if (keys.front().parts[i] != SIZE_MAX) ranks.push_back(i);
  }
  std::vector<LeverPlan> plans = MakeLeverPlans(run, by_rank_index, keys, ranks, options);
  if (options.only && plans.empty()) return what_if;
  const CollectiveFinder finder(collectives);
  std::vector<std::optional<StepOutcome>> outcomes(keys.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t k = next.fetch_add(1); k < keys.size(); k = next.fetch_add(1)) {
      const Result<JobStepGraph> step = JoinJobStep(run, collectives, finder, by_rank_index, keys[k]);
      if (!step) continue;
      const StepSimulator simulator(*step, by_rank_index.size());
      StepOutcome outcome;
      outcome.step = {
          .step = step->step, .observed_ns = step->observed_ns, .simulated_ns = simulator.Time(LeverPlan())};
      for (const LeverPlan& plan : plans) outcome.lever_ns.push_back(simulator.Time(plan));
      outcomes[k] = std::move(outcome);
    }
  };
  const size_t wanted = thread_count > 0 ? thread_count : std::max(1U, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < std::min(wanted, keys.size()); ++i) threads.emplace_back(work);
    work();
  }
  double observed = 0;
  double simulated = 0;
  double error = 0;
  std::vector<double> sums(plans.size(), 0);
  uint64_t failed = 0;
  for (const auto& outcome : outcomes) {
    if (!outcome) {
      ++failed;
      continue;
    }
    what_if.steps.push_back(outcome->step);
    const auto observed_ns = static_cast<double>(outcome->step.observed_ns);
    const auto simulated_ns = static_cast<double>(outcome->step.simulated_ns);
    observed += observed_ns;
    simulated += simulated_ns;
    if (observed_ns > 0) error += std::abs(simulated_ns - observed_ns) / observed_ns;
    for (size_t p = 0; p < plans.size(); ++p) sums[p] += static_cast<double>(outcome->lever_ns[p]);
  }
  if (failed > 0) {
    model::LedgerEntry entry;
    entry.code = "what_if_not_possible";
    entry.severity = model::Severity::kInfo;
    entry.count = failed;
    entry.message = "what-if: steps whose ranks wait for each other in a circle were left out";
    entry.advice = "their clocks or the matching of their collectives contradict each other: see the section clocks";
    ledger->Add(std::move(entry));
  }
  if (what_if.steps.empty()) return what_if;
  const auto count = static_cast<double>(what_if.steps.size());
  what_if.observed_step_ns = std::llround(observed / count);
  what_if.simulated_step_ns = std::llround(simulated / count);
  what_if.error_ratio = error / count;
  for (size_t p = 0; p < plans.size(); ++p) {
    plans[p].lever.step_ns = std::llround(sums[p] / count);
    what_if.levers.push_back(std::move(plans[p].lever));
  }
  RankLevers(&what_if);
  return what_if;
}

namespace {

std::vector<RowColumn<Lever>> LeverColumns() {
  using Row = Lever;
  return {
      Field<&Row::id>("id", "", "[Lever](metrics.md#what-if-levers), such as `no_stragglers` or `rank_at_median:3`."),
      In(ColumnPlace::kOnlyInJson,
         ListField<&Row::ranks>("ranks", "", "Ranks it changes; empty: all, or none in particular.")),
      JoinedInCsv<Row>("ranks",
                       [](const TableSource&, const Row& row) { return fmt::format("{}", fmt::join(row.ranks, " ")); }),
      Field<&Row::step_ns>("step_ns", "ns", "Simulated step with the change."),
      Field<&Row::gain_ns>("gain_ns", "ns",
                           "`simulated_step_ns` - `step_ns`; below 0 where the change makes the step longer."),
      Field<&Row::gain_ratio>("gain_ratio", "ratio", "`gain_ns` / `simulated_step_ns`."),
      Field<&Row::title>("title", "", "The change in words."),
  };
}

}  // namespace

Pass JobLeversPass() {
  return RunPass<WhatIf>({.question = "What would each change gain? (--what-if; operation traces: always)",
                          .needs = {"critical_path", "job_graph", "pipeline"},
                          .kind = PassKind::kOnRequest,
                          .tables = {DeclareTable("what_if", "", "A change, largest gain first", &WhatIf::levers,
                                                  LeverColumns(), {"what_if.levers[]", TableOrder::kVerdicts})}},
                         [](PassContext& context) {
                           return SimulateJob(context.run(), context.Get<Collectives>(), context.Get<JobGraphs>().ranks,
                                              context.options().thread_count, &context.ledger(),
                                              {.speedup = context.options().what_if_speedup,
                                               .stages = StagesOf(context.run(), context.Get<Pipelines>())});
                         });
}

}  // namespace lockstep::analysis
