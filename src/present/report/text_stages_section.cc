// Section of the pass "stages".
#include <fmt/format.h>

#include <optional>
#include <string>

#include "analysis/stages/stages_beside.h"
#include "present/report/format.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using analysis::StageAgreementRow;
using analysis::StagesBeside;
using analysis::StageScope;

const char* ScopeWords(const StageScope& scope) {
  return scope.name == "job" ? "all" : scope.name == "traced" ? "traced" : "the others";
}

std::string AnswerWords(const StageScope& scope) {
  const std::string stage = scope.stage();
  if (scope.rank()) return fmt::format("rank {} in {}", *scope.rank(), stage);
  const std::string answer = frontier::AnswerName(scope.verdict.answer);
  return stage.empty() ? answer : fmt::format("{}: {}", answer, stage);
}

void WriteScopes(const TextPage& page, const StagesBeside& stages) {
  TextTable table({{"steps", Align::kLeft},
                   {"count"},
                   {"from", Align::kRight, false, 1},
                   {"to", Align::kRight, false, 1},
                   {"median step"},
                   {"what costs", Align::kLeft},
                   {"of the time"}});
  const auto number = [](std::optional<int64_t> step) { return step ? std::to_string(*step) : std::string("-"); };
  for (const StageScope& scope : stages.scopes) {
    table.AddRow({ScopeWords(scope), std::to_string(scope.account.step_count), number(scope.first_step()),
                  number(scope.last_step()), FormatDuration(scope.median_step_ns), AnswerWords(scope),
                  scope.verdict.cost_ns > 0 ? FormatPercent(scope.verdict.cost_ratio) : "-"});
  }
  page.out << '\n';
  page.Write(table, 0);
}

void WriteShares(const TextPage& page, const StagesBeside& stages) {
  TextTable table({{"stage", Align::kLeft},
                   {"a step"},
                   {"traced"},
                   {"the others", Align::kRight, false, 1},
                   {"costs most", Align::kLeft}});
  const auto time = [](std::optional<int64_t> ns) { return ns ? FormatDuration(*ns) : std::string("-"); };
  for (const analysis::StageShareRow& row : stages.shares) {
    table.AddRow({row.stage, FormatDuration(row.job_ns), time(row.traced_ns), time(row.rest_ns),
                  row.cost_rank ? fmt::format("rank {}: {}", *row.cost_rank, FormatDuration(row.cost_ns)) : ""});
  }
  page.out << '\n';
  page.Write(table, 0);
}

}  // namespace

void WriteStagesSection(const TextPage& page) {
  page.Heading("STAGES", "of each step, recorded beside the traces");
  const auto& stages = page.result.Get<StagesBeside>();
  if (stages.job == nullptr) {
    page.Paragraph("No stages lie beside the traces. lockstep run --stages records them, step by step, all day.");
    return;
  }
  for (const StageAgreementRow& row : stages.agreement) {
    const Paint paint = row.agrees.value_or(true) ? Paint::kPlain : Paint::kWarn;
    const std::string mark = fmt::format("  {} ", row.agrees ? *row.agrees ? "agrees " : "differs" : "       ");
    WriteWrapped(Printable(row.sentence), mark, "          ", page.options.width, page.out, paint, page.style);
  }
  if (stages.agreement.empty()) page.Paragraph("No profiler's traces lie beside them, to be compared with.");
  WriteScopes(page, stages);
  WriteShares(page, stages);
  page.Paragraph("More of the same files, step by step: lockstep stages.");
}

void WriteStagesBrief(const TextPage& page) {
  const auto& stages = page.result.Get<StagesBeside>();
  if (stages.agreement.empty()) return;
  page.Heading("STAGES", "recorded beside the traces; more: --section stages");
  const StageAgreementRow& first = stages.agreement.front();
  page.Paragraph(Printable(first.sentence), first.agrees.value_or(true) ? Paint::kPlain : Paint::kWarn);
}

}  // namespace lockstep::report
