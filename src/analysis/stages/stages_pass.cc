// What the stages of each step say that `lockstep run --stages` recorded beside the traces, and whether both agree.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/host_role.h"
#include "analysis/operators.h"
#include "analysis/pass.h"
#include "analysis/stages/stage_agreement.h"
#include "analysis/stages/stages_beside.h"
#include "analysis/stragglers.h"
#include "analysis/table.h"
#include "analysis/wait_states/wait_states.h"
#include "base/median.h"
#include "model/stages/rank_stages.h"

namespace lockstep::analysis {
namespace {

/// Is it what stages are read from, and no trace beside them?
bool IsSpanFile(const model::RankTrace& trace) { return trace.source.ends_with(".spans"); }

/// The steps that a trace marks, or all of it where it marks none.
CoveredTimes CoveredBy(const model::Run& run, const Breakdown& breakdown) {
  CoveredTimes covered;
  std::vector<bool> has_steps(run.ranks.size());
  const auto is_beside = [&](const model::RankTrace& trace) { return trace.base_time_known && !IsSpanFile(trace); };
  for (const BreakdownRow& step : breakdown.steps) {
    const model::RankTrace& trace = run.ranks[step.rank_index];
    has_steps[step.rank_index] = true;
    if (is_beside(trace)) covered[trace.rank.value].emplace_back(step.start_ns, step.start_ns + step.span_ns);
  }
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    const model::RankTrace& trace = run.ranks[i];
    if (has_steps[i] || !is_beside(trace) || !trace.first_ns || !trace.last_ns) continue;
    covered[trace.rank.value].emplace_back(*trace.first_ns, *trace.last_ns);
  }
  for (auto& [rank, spans] : covered) std::sort(spans.begin(), spans.end());
  return covered;
}

/// As the finding on stragglers has it.
void TakeCulprit(const model::Run& run, const WaitStates& waits, const Stragglers& stragglers, TraceAnswer* answer) {
  const auto culprit = std::find_if(waits.culprits.begin(), waits.culprits.end(), [&](const WaitCulprit& each) {
    return each.rank_index && waits.causes[each.causes.front()].cause != RootCause::kSlowLink;
  });
  if (culprit == waits.culprits.end()) return;
  answer->rank = run.ranks[*culprit->rank_index].rank.value;
  const RootCauseRow& cause = waits.causes[culprit->causes.front()];
  const auto row = std::find_if(stragglers.rows.begin(), stragglers.rows.end(),
                                [&](const StragglerRow& each) { return each.rank_index == *culprit->rank_index; });
  const LateActivity* activity = row == stragglers.rows.end() ? nullptr : row->MainActivity();
  answer->cause = activity == nullptr ? cause.name : activity->name;
  answer->stage = StageOfName(answer->cause);
  if (answer->stage) return;
  if (cause.cause == RootCause::kGarbageCollection) answer->stage = model::Stage::kGarbageCollection;
  if (cause.cause == RootCause::kCheckpoint) answer->stage = model::Stage::kCheckpoint;
}

void TakeSteps(const model::Run& run, const Breakdown& breakdown, TraceAnswer* answer) {
  std::vector<int64_t> steps_ns;
  std::map<int64_t, std::vector<int64_t>> exposed_ns;  // By step: of its ranks.
  for (const BreakdownRow& step : breakdown.steps) {
    if (step.basis == Basis::kNone || IsSpanFile(run.ranks[step.rank_index])) continue;
    steps_ns.push_back(step.span_ns);
    exposed_ns[step.step_number.value_or(0)].push_back(step.exposed_communication_ns);
    answer->has_device |= step.basis == Basis::kDevice;
  }
  if (steps_ns.empty()) return;
  std::vector<int64_t> means_ns;
  for (const auto& [step, ranks_ns] : exposed_ns) {
    means_ns.push_back(std::accumulate(ranks_ns.begin(), ranks_ns.end(), int64_t{}) /
                       static_cast<int64_t>(ranks_ns.size()));
  }
  answer->exposed_communication_ns = Median(&means_ns);
  answer->step_ns = Median(&steps_ns);
}

/// The longest of a rank's names that are a data loader's, as one lies within the other.
void TakeInput(const model::Run& run, const Operators& operators, const Breakdown& breakdown, TraceAnswer* answer) {
  std::map<size_t, int64_t> by_rank;
  for (const OperatorRow& row : operators.rows) {
    if (HostRoleOf(run.names[row.name]) != HostRole::kDataLoader || IsSpanFile(run.ranks[row.rank_index])) continue;
    by_rank[row.rank_index] = std::max(by_rank[row.rank_index], row.cpu_total_ns);
  }
  const auto step_count = std::count_if(breakdown.steps.begin(), breakdown.steps.end(), [&](const BreakdownRow& step) {
    return !IsSpanFile(run.ranks[step.rank_index]);
  });
  if (by_rank.empty() || step_count == 0) return;
  int64_t sum_ns = 0;
  for (const auto& [rank_index, ns] : by_rank) sum_ns += ns;
  answer->input_ns = sum_ns / step_count;
}

StagesBeside ComputeStagesBeside(PassContext& context) {
  const model::Run& run = context.run();
  if (run.stages == nullptr) return {};
  const bool has_traces = !std::all_of(run.ranks.begin(), run.ranks.end(), IsSpanFile);
  const auto& breakdown = context.Get<Breakdown>();
  StagesBeside stages = AssessStages(std::make_shared<const frontier::JobStages>(frontier::AssessJob(*run.stages, {})),
                                     has_traces, CoveredBy(run, breakdown));
  TraceAnswer answer;
  std::set<int32_t> ranks;
  for (const model::RankTrace& trace : run.ranks) {
    if (!IsSpanFile(trace)) ranks.insert(trace.rank.value);
  }
  answer.rank_count = ranks.size();
  TakeCulprit(run, context.Get<WaitStates>(), context.Get<Stragglers>(), &answer);
  TakeSteps(run, breakdown, &answer);
  TakeInput(run, context.Get<Operators>(), breakdown, &answer);
  stages.agreement = CompareWithTrace(stages, answer);
  return stages;
}

const char* ScopeAnswer(const frontier::Verdict& verdict) { return frontier::AnswerName(verdict.answer); }

/// A column that a scope computes.
template <typename Value>
RowColumn<StageScope> Computed(std::string_view name, ColumnType type, std::string_view unit, std::string_view meaning,
                               std::string_view null, Value value) {
  return {name, type, unit, meaning, null, [value](const TableSource& source, const StageScope& row) {
            return table_internal::CellOf(source.run, value(row));
          }};
}

std::vector<RowColumn<StageScope>> ScopeColumns() {
  using Row = StageScope;
  return {
      Field<&Row::name>("scope", "",
                        "`job`: all steps; `traced`: those that the traces cover; `not_traced`: the others."),
      Field<&Row::account, &frontier::Accounting::step_count>("step_count", "count", "Steps that every rank recorded."),
      Computed("first_step", ColumnType::kInteger, "", "The first of them.", "there is none",
               [](const Row& row) { return row.first_step(); }),
      Computed("last_step", ColumnType::kInteger, "", "The last of them.", "there is none",
               [](const Row& row) { return row.last_step(); }),
      Field<&Row::account, &frontier::Accounting::total_ns>("total_ns", "ns",
                                                            "Their time: the sum of the frontier's increments."),
      Field<&Row::median_step_ns>("median_step_ns", "ns", "The step in their middle."),
      NamedField<&Row::verdict, ScopeAnswer>(
          "answer", "As `lockstep stages` has it (stages.md): `straggler`, `imbalance`, `stage`, `even`, `undecided`.",
          {"straggler", "imbalance", "stage", "even", "undecided"}),
      Computed("rank", ColumnType::kInteger, "", "Of a straggler.", "no rank is named",
               [](const Row& row) { return row.rank(); }),
      {"stage", ColumnType::kText, "", "Of a straggler, an imbalance, a stage.", "no stage is named",
       [](const TableSource&, const Row& row) { return row.stage().empty() ? Cell() : Cell(row.stage()); }},
      Field<&Row::verdict, &frontier::Verdict::cost_ns>("cost_ns", "ns", "What these steps would save."),
      Field<&Row::verdict, &frontier::Verdict::cost_ratio>("cost_ratio", "0..1", "That, of their time."),
      Field<&Row::verdict, &frontier::Verdict::confidence>("confidence", "0..1",
                                                           "In how much of them the same rank and stage cost most."),
  };
}

std::vector<RowColumn<StageShareRow>> ShareColumns() {
  using Row = StageShareRow;
  return {
      Field<&Row::stage>("stage", "", "The stage: `input`, `h2d`, `forward`, `backward`, `optimizer`, ..."),
      Field<&Row::job_ns>("job_ns", "ns", "What it adds to a step of the job: the frontier's increment, a mean."),
      Field<&Row::traced_ns>("traced_ns", "ns", "The same of the steps that the traces cover.", "there is none"),
      Field<&Row::rest_ns>("not_traced_ns", "ns", "The same of the others.", "there is none"),
      Field<&Row::cost_rank>("cost_rank", "", "The rank that costs most in it, over the job.",
                             "no rank costs anything"),
      Field<&Row::cost_ns>("cost_ns", "ns", "What that is a step."),
  };
}

std::vector<RowColumn<StageAgreementRow>> AgreementColumns() {
  using Row = StageAgreementRow;
  constexpr const char* kNoTime = "the question is not of a time, or there is none";
  return {
      Field<&Row::question>("question", "",
                            "`straggler`: who holds the others up; `steps`: are the traced steps like the others; "
                            "`step_time`, `exposed_communication`, `input`: of a traced step."),
      Field<&Row::agrees>("agrees", "", "Both say the same; of times: within a tenth, or a fiftieth of a step.",
                          "they cannot be compared"),
      Field<&Row::stages_ns>("stages_ns", "ns", "By the stage files; of `steps` a step that is not traced.", kNoTime),
      Field<&Row::trace_ns>("trace_ns", "ns", "By the traces; of `steps` a traced step, by the stage files.", kNoTime),
      Field<&Row::stages_rank>("stages_rank", "", "That the stage files name.", "none"),
      Field<&Row::trace_rank>("trace_rank", "", "That the traces name.", "none"),
      Field<&Row::stages_stage>("stages_stage", "", "In which, by the stage files.", "none"),
      Field<&Row::trace_stage>("trace_stage", "", "In which, by the traces.", "none, or its name does not tell"),
      Field<&Row::sentence>("sentence", "", "What both say and, where they differ, why."),
  };
}

}  // namespace

Pass StagesPass() {
  return RunPass<StagesBeside>(
      {.question = "What do the stages of each step say that lie beside the traces, and do both agree?",
       .needs = {Breakdown::kPass, WaitStates::kPass, Stragglers::kPass, Operators::kPass},
       .tables = {DeclareTable(
                      "stage_scopes", "stage_scopes",
                      "What the stages of the job's steps say, over all of them and over those that are traced",
                      &StagesBeside::scopes, ScopeColumns()),
                  DeclareTable("stage_shares", "stage_shares", "What a stage adds to a step of the job",
                               &StagesBeside::shares, ShareColumns()),
                  DeclareTable("stage_agreement", "stage_agreement",
                               "A question that both the stage files and the traces answer", &StagesBeside::agreement,
                               AgreementColumns())}},
      ComputeStagesBeside);
}

}  // namespace lockstep::analysis
