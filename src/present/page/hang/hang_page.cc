#include "present/page/hang/hang_page.h"

#include <fmt/format.h>

#include <sstream>

#include "present/page/answer_page.h"
#include "present/page/html.h"
#include "present/report/hang/hang_report.h"

namespace lockstep::page {
namespace {

using hang::Diagnosis;
using hang::Verdict;

std::string RankWords(const std::vector<int32_t>& ranks) {
  constexpr size_t kMost = 24;
  std::string text;
  for (size_t at = 0; at < ranks.size() && at < kMost; ++at) text += fmt::format("{}{}", at ? ", " : "", ranks[at]);
  if (ranks.size() > kMost) text += fmt::format(" and {} more", ranks.size() - kMost);
  return text;
}

std::string VerdictHtml(const Verdict& verdict) {
  std::string html = fmt::format(
      "<section id=\"summary-verdict\"><h2>Verdict</h2>\n<p><strong>{}</strong></p>\n<dl>"
      "<dt>Kind</dt><dd>{}</dd><dt>Confidence</dt><dd>{:.0f} %</dd>",
      EscapeHtml(verdict.explanation), hang::VerdictKindName(verdict.kind), verdict.confidence * 100);
  if (!verdict.culprit_ranks.empty()) {
    html += fmt::format("<dt>{}</dt><dd>{}</dd>", verdict.confidence < 0.5 ? "Suspect ranks" : "Culprit ranks",
                        RankWords(verdict.culprit_ranks));
  }
  if (!verdict.victim_ranks.empty()) {
    html += fmt::format("<dt>Victim ranks</dt><dd>{}</dd>", RankWords(verdict.victim_ranks));
  }
  html += "</dl></section>\n";
  if (!verdict.advice.empty()) {
    html += "<section id=\"summary-advice\"><h2>What to try</h2>\n<ol>";
    for (const std::string& advice : verdict.advice) html += fmt::format("<li>{}</li>", EscapeHtml(advice));
    html += "</ol></section>\n";
  }
  return html;
}

}  // namespace

std::string ComposeHangPage(const Diagnosis& diagnosis) {
  std::ostringstream text;
  report::WriteHangText(diagnosis, {.colour = false, .columns = 100, .all = false}, text);
  return ComposeAnswerPage({.kind = PageKind::kHang,
                            .title = fmt::format("{} - lockstep hang", hang::VerdictKindName(diagnosis.verdict.kind)),
                            .lead_html = VerdictHtml(diagnosis.verdict),
                            .text = text.str(),
                            .partial = report::IsPartial(diagnosis),
                            .ledger = report::HangLedger(diagnosis),
                            .data_json = report::HangDataJson(diagnosis)});
}

}  // namespace lockstep::page
