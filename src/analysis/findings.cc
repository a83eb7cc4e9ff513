#include "analysis/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "analysis/finding_context.h"

namespace lockstep::analysis {

const char* FindingSeverityName(FindingSeverity severity) {
  switch (severity) {
    case FindingSeverity::kInfo: return "info";
    case FindingSeverity::kWarning: return "warning";
    case FindingSeverity::kCritical: return "critical";
  }
  return "info";
}

void SortFindings(std::vector<Finding>* findings) {
  std::stable_sort(findings->begin(), findings->end(), [](const Finding& a, const Finding& b) {
    return std::tuple(b.is_premise, b.gain_ns_per_step.value_or(-1), b.severity, std::string_view(a.id)) <
           std::tuple(a.is_premise, a.gain_ns_per_step.value_or(-1), a.severity, std::string_view(b.id));
  });
}

std::vector<Finding> ComputeFindings(const RunContext& shared, const AnalysisResult& result) {
  std::vector<Finding> findings;
  if (shared.run->ranks.empty()) return findings;
  const FindingContext context(shared, result);
  FindStragglerFindings(context, &findings);
  FindCommunicationFindings(context, &findings);
  FindHostFindings(context, &findings);
  FindBalanceFindings(context, &findings);
  FindParallelismFindings(context, &findings);
  FindCoverageFindings(context, &findings);
  for (Finding& finding : findings) {
    if (finding.gain_ns_per_step && context.step_ns() > 0) {
      finding.gain_ratio = static_cast<double>(*finding.gain_ns_per_step) / static_cast<double>(context.step_ns());
    }
  }
  SortFindings(&findings);
  return findings;
}

namespace {

std::vector<RowColumn<Evidence>> EvidenceColumns() {
  using Row = Evidence;
  return {
      Field<&Row::name>("name", "", "snake_case, with its unit."),
      Field<&Row::value>("value", "in the name", "The number.", "not finite"),
      Field<&Row::text>("text", "", "For people."),
  };
}

std::vector<RowColumn<Finding>> FindingColumns() {
  using Row = Finding;
  return {
      Field<&Row::id>("id", "",
                      "Stable name: `straggler`, `exposed_communication`, `host_bound`, ... (metrics.md#findings)."),
      NamedField<&Row::severity, FindingSeverityName>("severity", "How bad: `info`, `warning` or `critical`.",
                                                      {"info", "warning", "critical"}),
      In(ColumnPlace::kNotInCsv,
         ListField<&Row::ranks>("ranks", "",
                                "Ranks concerned, worst first; `[]` = the whole job. A straggler finding names the "
                                "late ranks, never those that wait.")),
      JoinedInCsv<Row>("ranks",
                       [](const TableSource&, const Row& row) { return fmt::format("{}", fmt::join(row.ranks, " ")); }),
      Field<&Row::title>("title", "", "One sentence."),
      In(ColumnPlace::kNotInCsv,
         ListField<Row>(
             std::mem_fn(&Row::evidence),
             ObjectField("evidence", "The numbers behind it: `name`, `value`, `text`.", "", EvidenceColumns()))),
      JoinedInCsv<Row>("evidence",
                       [](const TableSource&, const Row& row) {
                         std::string text;
                         for (const Evidence& item : row.evidence) text += (text.empty() ? "" : "; ") + item.text;
                         return text;
                       }),
      In(ColumnPlace::kNotInCsv, ListField<&Row::advice>("advice", "", "What to do, first thing first.")),
      JoinedInCsv<Row>(
          "advice", [](const TableSource&, const Row& row) { return fmt::format("{}", fmt::join(row.advice, "; ")); }),
      Field<&Row::gain_ns_per_step>("gain_ns_per_step", "ns",
                                    "Upper bound on what the fix saves per step; per window when there are no steps.",
                                    "not known"),
      Field<&Row::gain_ratio>(
          "gain_ratio", "0..1",
          "`gain_ns_per_step` / the step that it was computed with: the mean of the ranks', or the simulated one.",
          "not known"),
  };
}

}  // namespace

Table FindingTable() {
  return DeclareTableOver<Finding>(
      [](const TableSource& source) -> const std::vector<Finding>& { return source.result.findings; }, "", "findings",
      "findings", "What is wrong, for whom, how that is known, what to do; largest gain first", FindingColumns(),
      {"", TableOrder::kVerdicts});
}

}  // namespace lockstep::analysis
