#include "present/page/summary.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/breakdown.h"
#include "analysis/finding.h"
#include "present/page/html.h"
#include "present/report/format.h"
#include "present/report/job_facts.h"
#include "present/report/rank_summary.h"
#include "present/report/text_page.h"
#include "present/report/verdict.h"

namespace lockstep::page {
namespace {

using analysis::Basis;
using analysis::Finding;
using report::FormatDuration;

constexpr size_t kMostRanks = 2'000;
constexpr size_t kMostLedgerRows = 200;

std::string Duration(double ns) { return FormatDuration(static_cast<int64_t>(std::llround(ns))); }
std::string Duration(const std::optional<double>& ns) { return ns ? Duration(*ns) : "not measured"; }

void AddVerdict(const PageModel& model, std::string* html) {
  *html += "<section id=\"summary-verdict\"><h2>Verdict</h2>\n";
  const auto verdict = report::VerdictFindings(model.result().findings);
  if (verdict.empty()) *html += fmt::format("<p>{}</p>\n", EscapeHtml(report::kNoVerdict));
  for (const Finding* finding : verdict) {
    const std::string gain = report::HeadlineGain(*finding, model.result().step_count > 0);
    *html += fmt::format("<p><strong>{}</strong> {}{}</p>\n", analysis::FindingSeverityName(finding->severity),
                         EscapeHtml(finding->title), gain.empty() ? "" : fmt::format(" ({})", EscapeHtml(gain)));
  }
  *html += "</section>\n";
}

void AddFact(const char* name, const std::string& value, std::string* html) {
  *html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, EscapeHtml(value));
}

void AddJob(const PageModel& model, std::string* html) {
  const report::JobFacts facts = report::FactsOf(model.run());
  *html += "<section id=\"summary-job\"><h2>Job</h2>\n<dl>\n";
  std::string ranks = report::FormatCount(facts.rank_count);
  if (facts.world_size) ranks += fmt::format(" of {}", report::FormatCount(static_cast<uint64_t>(*facts.world_size)));
  if (facts.missing_rank_count > 0) {
    ranks += fmt::format(", without {}{}", report::RankList(facts.missing_ranks, 20),
                         facts.missing_rank_count > facts.missing_ranks.size() ? " and more" : "");
  }
  AddFact("Ranks", ranks, html);
  if (facts.window_count > 1) AddFact("Windows", report::FormatCount(facts.window_count), html);
  if (!facts.hosts.empty()) {
    AddFact("Hosts", facts.hosts.size() == 1 ? facts.hosts[0] : report::FormatCount(facts.hosts.size()), html);
  }
  if (!facts.devices.empty()) AddFact("Devices", facts.devices, html);
  if (!facts.backend.empty()) AddFact("Backend", facts.backend, html);
  AddFact("Steps", model.result().step_count > 0 ? std::to_string(model.result().step_count) : "none marked", html);
  AddFact("Window", FormatDuration(model.result().job_span_ns), html);
  AddFact("Events", report::FormatCount(facts.event_count), html);
  *html += "</dl></section>\n";
}

void AddFindings(const PageModel& model, std::string* html) {
  *html += "<section id=\"summary-findings\"><h2>Findings</h2>\n";
  if (model.result().findings.empty()) *html += "<p>None.</p>\n";
  *html += "<ol>\n";
  for (const Finding& finding : model.result().findings) {
    *html += fmt::format("<li><p><strong>{}: {}</strong></p>\n", analysis::FindingSeverityName(finding.severity),
                         EscapeHtml(finding.title));
    const std::string gain = report::GainWords(finding, model.result().step_count > 0);
    if (!gain.empty()) *html += fmt::format("<p>It {}.</p>\n", EscapeHtml(gain));
    *html += "<ul>\n";
    for (const analysis::Evidence& evidence : finding.evidence) {
      *html += fmt::format("<li>{}</li>\n", EscapeHtml(evidence.text));
    }
    for (const std::string& advice : finding.advice) *html += fmt::format("<li>Try: {}</li>\n", EscapeHtml(advice));
    *html += "</ul></li>\n";
  }
  *html += "</ol></section>\n";
}

void AddRank(const PageModel& model, const report::RankSummary& row, std::string* html) {
  const model::RankTrace& trace = model.run().ranks[row.rank_index];
  *html += fmt::format("<tr><th scope=\"row\">{}{}</th><td>{}</td>", trace.rank.value,
                       trace.window > 0 ? fmt::format(" w{}", trace.window) : "",
                       trace.host.empty() ? "unknown" : EscapeHtml(trace.host));
  if (row.basis == Basis::kNone) {
    *html += "<td colspan=\"4\">nothing measured</td>";
  } else {
    *html += fmt::format("<td>{}</td><td>{}</td><td>{}</td><td>{}</td>", Duration(row.span_ns),
                         Duration(row.compute_ns), Duration(row.exposed_communication_ns), Duration(row.idle_ns));
  }
  *html += fmt::format("<td>{}</td><td>{}</td></tr>\n", Duration(row.wait_ns), Duration(row.wait_given_ns));
}

void AddRanks(const PageModel& model, std::string* html) {
  if (!model.result().Has<analysis::Breakdown>()) return;
  const report::Summary summary = report::Summarise(model.run(), model.result(), {});
  const bool steps = summary.scope == report::Scope::kStepMean;
  *html += fmt::format("<section id=\"summary-ranks\"><h2>Ranks</h2>\n<table><caption>{}, worst first</caption>\n",
                       steps ? "Mean of a step" : "The whole window");
  *html += fmt::format(
      "<thead><tr><th scope=\"col\">Rank</th><th scope=\"col\">Host</th><th scope=\"col\">{}</th>"
      "<th scope=\"col\">Compute</th><th scope=\"col\">Exposed communication</th>"
      "<th scope=\"col\">Idle</th><th scope=\"col\">Waits for others</th>"
      "<th scope=\"col\">Others wait for it</th></tr></thead>\n<tbody>\n",
      steps ? "Step" : "Span");
  for (size_t i = 0; i < summary.ranks.size() && i < kMostRanks; ++i) AddRank(model, summary.ranks[i], html);
  *html += "</tbody></table>\n";
  if (summary.ranks.size() > kMostRanks) {
    *html += fmt::format("<p>{} more ranks are not in this table.</p>\n",
                         report::FormatCount(summary.ranks.size() - kMostRanks));
  }
  *html += "</section>\n";
}

void AddQuality(const PageModel& model, const std::vector<Reduction>& reductions, std::string* html) {
  *html += "<section id=\"summary-quality\"><h2>Data quality</h2>\n";
  if (model.input.partial) *html += "<p><strong>Partial: ranks or parts of files are missing.</strong></p>\n";
  const auto& entries = model.run().ledger.entries();
  if (entries.empty() && reductions.empty()) *html += "<p>Nothing was skipped, repaired or guessed.</p>\n";
  *html += "<ul>\n";
  for (const Reduction& reduction : reductions) {
    *html += fmt::format("<li>Left out of this page: {}</li>\n", EscapeHtml(reduction.message));
  }
  for (size_t i = 0; i < entries.size() && i < kMostLedgerRows; ++i) {
    const model::LedgerEntry& entry = entries[i];
    *html += fmt::format("<li><strong>{}</strong> ", model::SeverityName(entry.severity));
    if (!entry.source.empty()) *html += EscapeHtml(entry.source) + ": ";
    if (entry.rank) *html += fmt::format("rank {}: ", *entry.rank);
    *html += EscapeHtml(entry.message);
    if (entry.count > 1) *html += fmt::format(" ({} times)", report::FormatCount(entry.count));
    if (!entry.advice.empty()) *html += fmt::format(" <em>{}</em>", EscapeHtml(entry.advice));
    *html += "</li>\n";
  }
  *html += "</ul>\n";
  if (entries.size() > kMostLedgerRows) {
    *html += fmt::format("<p>{} more rows are in the output of --json.</p>\n",
                         report::FormatCount(entries.size() - kMostLedgerRows));
  }
  *html += "</section>\n";
}

}  // namespace

std::string SummaryHtml(const PageModel& model, const std::vector<Reduction>& reductions) {
  std::string html = fmt::format("<h1>{}</h1>\n", EscapeHtml(JobName(model.run())));
  AddVerdict(model, &html);
  AddJob(model, &html);
  AddFindings(model, &html);
  AddRanks(model, &html);
  AddQuality(model, reductions, &html);
  return html;
}

}  // namespace lockstep::page
