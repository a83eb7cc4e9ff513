#include "analysis/stage_comparison/stage_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace lockstep::stage_comparison {

using comparison::Change;
using model::StageSummary;
using model::SummaryStep;
using model::SummaryWindow;

namespace {

/// Why a run is no measure.
void TellIncomplete(const char* name, const StageSummary& run, std::vector<std::string>* reasons) {
  const std::optional<int>& status = run.facts.exit_status;
  if (status && *status != 0) {
    reasons->push_back(fmt::format("{} did not complete: its command ended with status {}{}", name, *status,
                                   *status > 128 ? fmt::format(" (signal {})", *status - 128) : ""));
  }
  if (!run.running_ranks.empty()) {
    const size_t count = run.running_ranks.size();
    reasons->push_back(
        fmt::format("{} did not complete: {} of {} ranks, the first of them rank {}, did not end in order", name, count,
                    run.ranks.size(), run.running_ranks.front()));
  }
  if (static_cast<int64_t>(run.ranks.size()) < run.world_size) {
    reasons->push_back(
        fmt::format("{} is not whole: {} of its {} ranks left stages", name, run.ranks.size(), run.world_size));
  } else if (run.is_partial) {
    reasons->push_back(fmt::format("{} is not whole: its ledger says what is missing", name));
  }
}

std::string DeclaredIn(const model::Workload& workload, const std::string& key) {
  const auto found = workload.find(key);
  return found == workload.end() ? "not declared" : fmt::format("'{}'", found->second);
}

void TellDifferences(const StageSummary& a, const StageSummary& b, std::vector<std::string>* reasons) {
  if (a.world_size != b.world_size) {
    reasons->push_back(fmt::format("world size: {} in A, {} in B", a.world_size, b.world_size));
  }
  std::set<std::string> keys;
  for (const auto* run : {&a, &b}) {
    for (const auto& [key, value] : run->facts.workload) keys.insert(key);
  }
  for (const std::string& key : keys) {
    const std::string in_a = DeclaredIn(a.facts.workload, key);
    const std::string in_b = DeclaredIn(b.facts.workload, key);
    if (in_a != in_b) reasons->push_back(fmt::format("workload {}: {} in A, {} in B", key, in_a, in_b));
  }
}

bool IsIn(const SummaryWindow& window, int64_t steps_before, int64_t skip, const Options& options) {
  if (options.first_step) {
    return window.first_step >= *options.first_step && window.last_step <= options.last_step.value_or(INT64_MAX);
  }
  return steps_before >= skip;
}

Side SideOf(StageSummary summary, const Options& options) {
  Side side;
  int64_t all_steps = 0;
  for (const SummaryWindow& window : summary.windows) all_steps += window.step_count;
  const int64_t skip = options.skip_steps.value_or(std::max(kLeastWarmUp, all_steps / 10));
  comparison::Series steps_ns;
  auto step = summary.steps.begin();
  int64_t steps_before = 0;
  double sum_ns = 0;
  for (const SummaryWindow& window : summary.windows) {
    const bool is_in = IsIn(window, steps_before, skip, options);
    steps_before += window.step_count;
    if (!is_in) {
      if (!options.first_step) side.warm_up_steps += window.step_count;
      continue;
    }
    const auto count = static_cast<double>(window.step_count);
    side.step_count += window.step_count;
    sum_ns += static_cast<double>(window.ns);
    side.step_ns.push_back(static_cast<double>(window.ns) / count);
    for (size_t i = 0; i < side.stage_ns.size(); ++i) {
      side.stage_ns[i].push_back(static_cast<double>(window.frontier_ns[i]) / count);
    }
    step = std::lower_bound(step, summary.steps.end(), window.first_step,
                            [](const SummaryStep& a, int64_t number) { return a.number < number; });
    for (; step != summary.steps.end() && step->number <= window.last_step; ++step) {
      steps_ns.push_back(static_cast<double>(step->ns));
    }
  }
  if (side.step_count > 0) side.mean_step_ns = sum_ns / static_cast<double>(side.step_count);
  side.median_step_ns = comparison::Median(std::move(steps_ns));
  side.summary = std::move(summary);
  return side;
}

void AddNotes(const StageComparison& comparison, std::vector<std::string>* notes) {
  const Side& a = comparison.a;
  const Side& b = comparison.b;
  if (a.summary.facts.workload.empty()) {
    notes->push_back("no workload is declared: that both ran the same is taken for granted (lockstep run --workload)");
  }
  for (const auto* side : {&a, &b}) {
    if (!side->summary.facts.exit_status) {
      notes->push_back(
          fmt::format("how {}'s command ended is not known; all of its ranks ended in order", side == &a ? "A" : "B"));
    }
  }
  if (a.warm_up_steps + b.warm_up_steps > 0) {
    notes->push_back(fmt::format("warm-up left out: {} step(s) of A, {} of B", a.warm_up_steps, b.warm_up_steps));
  }
  notes->push_back(comparison::kNoiseNote);
}

const char* UnitOf(const Side& a, const Side& b) {
  const bool are_steps =
      a.step_count == static_cast<int64_t>(a.step_ns.size()) && b.step_count == static_cast<int64_t>(b.step_ns.size());
  return are_steps ? "step" : "window";
}

std::string Percent(double ratio) { return fmt::format("{:.{}f} %", ratio * 100, ratio < 0.1 ? 1 : 0); }

}  // namespace

Status CheckComparable(const StageSummary& a, const StageSummary& b) {
  std::vector<std::string> reasons;
  TellIncomplete("A", a, &reasons);
  TellIncomplete("B", b, &reasons);
  const bool are_whole = reasons.empty();
  TellDifferences(a, b, &reasons);
  if (reasons.empty()) return {};
  return Error{ErrorCode::kFailedPrecondition,
               fmt::format("these runs cannot be compared: {}; {}", fmt::join(reasons, "; "),
                           are_whole ? "run both alike, with equal --workload, or make a new baseline"
                                     : "run it again, to its end")};
}

StageComparison Compare(StageSummary a, StageSummary b, const Options& options) {
  StageComparison compared;
  compared.options = options;
  compared.a = SideOf(std::move(a), options);
  compared.b = SideOf(std::move(b), options);
  const double minimum = options.compare.minimum_effect;
  const double confidence = options.compare.confidence;
  compared.step = comparison::CompareSeries(compared.a.step_ns, compared.b.step_ns, 0, minimum, confidence);
  std::vector<std::pair<std::string, const comparison::Delta*>> parts;
  for (const model::Stage stage : model::kStages) {
    const auto i = static_cast<size_t>(stage);
    compared.stages[i] =
        comparison::CompareSeries(compared.a.stage_ns[i], compared.b.stage_ns[i], compared.step.a, minimum, confidence);
    parts.emplace_back(model::StageName(stage), &compared.stages[i]);
  }
  comparison::Verdict& verdict = compared.verdict;
  verdict.change = compared.step.change;
  verdict.sentence = comparison::StepSentence(compared.step, compared.a.step_ns.size(), compared.b.step_ns.size(),
                                              UnitOf(compared.a, compared.b), options.compare);
  if (verdict.change == Change::kFaster || verdict.change == Change::kSlower) {
    verdict.reasons = comparison::PartReasons(compared.step, parts, "");
    if (!verdict.reasons.empty()) verdict.sentence += ", because " + verdict.reasons.front().text;
  }
  AddNotes(compared, &verdict.notes);
  return compared;
}

const char* GateResultName(GateResult result) {
  static constexpr const char* kNames[] = {"passed", "failed", "undecided"};
  return kNames[static_cast<size_t>(result)];
}

Gate Decide(const StageComparison& compared, double allowed_ratio) {
  const comparison::Delta& step = compared.step;
  const double ratio = step.ratio().value_or(0);
  if (step.change == Change::kSlower && ratio >= allowed_ratio) {
    return {allowed_ratio, GateResult::kFailed,
            fmt::format("fails: B is {} slower, the limit is {}", Percent(ratio), Percent(allowed_ratio))};
  }
  const double limit = std::max(allowed_ratio, compared.options.compare.minimum_effect);
  if (!step.shift || !step.shift->high || step.a <= 0) {
    return {
        allowed_ratio, GateResult::kUndecided,
        fmt::format("cannot tell at {}: there are too few windows of steps; let the runs be longer", Percent(limit))};
  }
  const double most = *step.shift->high / step.a;
  if (most >= limit) {
    return {
        allowed_ratio, GateResult::kUndecided,
        fmt::format("cannot tell at {}: within the noise B may be up to {} slower; longer runs, or a quieter machine, "
                    "narrow it",
                    Percent(limit), Percent(most))};
  }
  return {allowed_ratio, GateResult::kPassed,
          most > 0 ? fmt::format("passes: B is at most {} slower, the limit is {}", Percent(most), Percent(limit))
                   : fmt::format("passes: B is not slower, the limit is {}", Percent(limit))};
}

}  // namespace lockstep::stage_comparison
