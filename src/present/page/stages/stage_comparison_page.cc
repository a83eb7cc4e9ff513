#include "present/page/stages/stage_comparison_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "analysis/comparison/compare.h"
#include "model/stages/stage.h"
#include "present/page/html.h"
#include "present/page/plain_page.h"
#include "present/report/delta_text.h"
#include "present/report/format.h"
#include "present/report/stages/stage_comparison_report.h"

namespace lockstep::page {

using stage_comparison::Gate;
using stage_comparison::Side;
using stage_comparison::StageComparison;

namespace {

constexpr const char* kComparisonStyle = R"(
:root { --before: #7b838d; --after: #2f6db5; }
@media (prefers-color-scheme: dark) { :root { --before: #9aa2ac; --after: #5e9fe6; } }
.verdict { font-size: 1.15rem; font-weight: 600; } .failed { color: var(--bad); font-weight: 600; }
th, td { white-space: nowrap; } svg .a { fill: var(--before); } svg .b { fill: var(--after); }
svg polyline { fill: none; stroke-width: 2; } svg polyline.a { fill: none; stroke: var(--before); }
svg polyline.b { fill: none; stroke: var(--after); }
)";

/// Both medians as bars, the longest of all `most_ns`.
std::string Bars(const comparison::Delta& delta, double most_ns) {
  const double scale = most_ns > 0 ? 160 / most_ns : 0;
  return fmt::format(
      "<td><svg width=\"160\" height=\"16\" aria-hidden=\"true\"><rect class=\"a\" width=\"{:.1f}\" height=\"7\"/>"
      "<rect class=\"b\" y=\"8\" width=\"{:.1f}\" height=\"7\"/></svg></td>",
      delta.a * scale, delta.b * scale);
}

std::string DeltaCells(const char* name, const comparison::Delta& delta, double most_ns) {
  return "<tr>" + TextCell(name) + NumberCell(report::FormatMeanDuration(delta.a)) +
         NumberCell(report::FormatMeanDuration(delta.b)) + Bars(delta, most_ns) +
         NumberCell(delta.shift ? report::SignedTime(delta.shift->estimate) : "-") +
         NumberCell(report::SignedPercent(delta.ratio())) + NumberCell(report::Interval(delta)) +
         TextCell(report::Word(delta.change, delta)) + "</tr>\n";
}

std::string StageTable(const StageComparison& comparison) {
  const std::string level = report::Level(comparison.options.compare.confidence);
  const double most_ns = std::max(comparison.step.a, comparison.step.b);
  std::string html = "<h2>Stages of a step</h2>\n<p class=\"faint\">Medians of windows of steps.</p>\n" +
                     OpenTable("Stages of a step", {{"", false},
                                                    {"A", true},
                                                    {"B", true},
                                                    {"Drawn", false},
                                                    {"Change", true},
                                                    {"Of A", true},
                                                    {level.c_str(), true},
                                                    {"", false}}) +
                     DeltaCells("step", comparison.step, most_ns);
  for (const model::Stage stage : model::kStages) {
    const comparison::Delta& delta = comparison.stages[static_cast<size_t>(stage)];
    if (delta.a > 0 || delta.b > 0) html += DeltaCells(StageName(stage), delta, most_ns);
  }
  return html + kCloseTable;
}

constexpr int kLineWidth = 900, kLineHeight = 240, kLineLeft = 92, kLineEdge = 14, kAxisHeight = 10;

std::string RunLabel(const char* name, const Side& side) {
  return fmt::format("{}: {} step{}", name, side.step_count, side.step_count == 1 ? "" : "s");
}

std::string LineOf(const Side& side, const char* style, double most_ns) {
  if (side.step_ns.size() < 2) return "";
  std::string points;
  const double width = (kLineWidth - kLineLeft - kLineEdge) / static_cast<double>(side.step_ns.size() - 1);
  for (size_t i = 0; i < side.step_ns.size(); ++i) {
    points += fmt::format("{:.1f},{:.1f} ", kLineLeft + width * static_cast<double>(i),
                          kLineHeight - kLineEdge - (kLineHeight - 2 * kLineEdge) * side.step_ns[i] / most_ns);
  }
  return fmt::format("<polyline class=\"{}\" points=\"{}\"/>\n", style, points);
}

/// Windows of both runs, each over its own length.
std::string WindowsSvg(const StageComparison& comparison) {
  double most_ns = 1;
  for (const auto* side : {&comparison.a, &comparison.b}) {
    for (const double ns : side->step_ns) most_ns = std::max(most_ns, ns);
  }
  std::string svg = fmt::format(
      "<h2>Steps over time</h2>\n<p class=\"faint\">Means of windows of steps, without the warm-up, from each run's "
      "first to "
      "its last.</p>\n<ul class=\"key\">{2}{3}</ul>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Time a step over each run\"><svg role=\"img\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\"><title>Time a step over each run</title>\n",
      kLineWidth, kLineHeight + kAxisHeight, KeyItem("a", RunLabel("A", comparison.a)),
      KeyItem("b", RunLabel("B", comparison.b)));
  for (int i = 0; i <= 2; ++i) {
    const double y = kLineHeight - kLineEdge - (kLineHeight - 2 * kLineEdge) * i / 2.0;
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text class=\"axis\" x=\"{}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{}</text>\n",
        kLineLeft, y, kLineWidth - kLineEdge, kLineLeft - 6, y + 4, report::FormatMeanDuration(most_ns * i / 2));
  }
  for (int i = 0; i <= 4; ++i) {
    svg += fmt::format("<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n",
                       kLineLeft + (kLineWidth - kLineLeft - kLineEdge) * i / 4, kLineHeight + 4,
                       i == 0   ? "start"
                       : i == 4 ? "end"
                                : "middle",
                       i == 4 ? "100 % of the run's steps" : fmt::format("{} %", 25 * i));
  }
  return svg + LineOf(comparison.a, "a", most_ns) + LineOf(comparison.b, "b", most_ns) + "</svg></div>\n";
}

std::string WholeRuns(const StageComparison& comparison) {
  std::string html =
      "<h2>Whole runs</h2>\n" + OpenTable("Whole runs", {{"", false}, {"A", true}, {"B", true}, {"Of A", true}});
  for (const report::WholeRunRow& row : report::WholeRunRows(comparison)) {
    html += "<tr>" + TextCell(row.name) + NumberCell(row.a) + NumberCell(row.b) + NumberCell(row.change) + "</tr>\n";
  }
  html += std::string(kCloseTable) + "<h2>What each run says of itself</h2>\n<dl>";
  for (const auto* side : {&comparison.a, &comparison.b}) {
    html += fmt::format("<dt>{}: {}</dt><dd>{}</dd>", side == &comparison.a ? "A" : "B",
                        EscapeHtml(side->summary.source), EscapeHtml(side->summary.verdict));
  }
  return html + "</dl>\n";
}

}  // namespace

std::string StageComparisonPage(const StageComparison& comparison, const std::optional<Gate>& gate) {
  std::string html = OpenPlainPage("Two runs by their stages", "Two runs by their stages", kComparisonStyle);
  html += fmt::format("<p class=\"verdict\">{}</p>\n", EscapeHtml(comparison.verdict.sentence));
  if (gate) {
    html += fmt::format("<p class=\"{}\">--fail-on {}</p>\n", GateResultName(gate->result), EscapeHtml(gate->sentence));
  }
  for (const std::string& note : comparison.verdict.notes) {
    html += fmt::format("<p class=\"faint\">{}</p>\n", EscapeHtml(note));
  }
  html += StageTable(comparison) + WindowsSvg(comparison) + WholeRuns(comparison);
  std::ostringstream text;
  report::TextOptions options;
  options.width = 110;
  report::WriteStageComparisonText(comparison, gate, options, text);
  return html + fmt::format(
                    "<h2>As text</h2>\n<details><summary>The whole report</summary><pre tabindex=\"0\">{}</pre>"
                    "</details>\n{}",
                    EscapeHtmlLines(text.str()), kClosePlainPage);
}

}  // namespace lockstep::page
