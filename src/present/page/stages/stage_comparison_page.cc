#include "present/page/stages/stage_comparison_page.h"

#include <sstream>

#include "present/page/answer_page.h"
#include "present/report/stages/stage_comparison_report.h"

namespace lockstep::page {

using stage_comparison::Gate;
using stage_comparison::StageComparison;

std::string StageComparisonPage(const StageComparison& comparison, const std::optional<Gate>& gate) {
  std::ostringstream text;
  report::TextOptions options;
  options.width = 110;
  report::WriteStageComparisonText(comparison, gate, options, text);
  return ComposeAnswerPage({.kind = PageKind::kStageComparison,
                            .title = "Two runs by their stages - lockstep",
                            .lead_html = LeadHtml(comparison.verdict.sentence) + (gate ? LeadHtml(gate->sentence) : ""),
                            .text = text.str(),
                            .data_json = report::StageComparisonDataJson(comparison, gate)});
}

}  // namespace lockstep::page
