#include "present/page/stages/stages_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/median.h"
#include "model/stages/stage.h"
#include "present/page/html.h"
#include "present/page/plain_page.h"
#include "present/page/stages/stages_drawing.h"
#include "present/report/format.h"
#include "present/report/stages/stages_report.h"

namespace lockstep::page {
namespace {

using frontier::Accounting;
using frontier::JobStages;
using frontier::StageAccount;
using frontier::Window;
using model::Stage;
using rank_memory::Signal;

// A colour a stage, at least 3 : 1 against the paper; what is not computing is warm.
constexpr const char* kStyle = R"(
:root { --input: #c05200; --h2d: #8a6d00; --forward: #2f6db5; --backward: #1d4480; --optimizer: #1f7a86; --comm: #b3261e;
  --checkpoint: #8a4a9e; --validation: #2c7a3f; --gc: #b0357c; --other: #7b838d; }
@media (prefers-color-scheme: dark) { :root { --input: #f08c3e; --h2d: #d9b93b; --forward: #5e9fe6; --backward: #3f74c4;
  --optimizer: #4fb8c4; --comm: #ff8a80; --checkpoint: #c38fd6; --validation: #63b877; --gc: #ee7fbb; --other: #9aa2ac; } }
.verdict { font-size: 1.15rem; font-weight: 600; } dt { color: var(--faint); } dd { margin: 0 0 .6rem 0; }
th, td { white-space: nowrap; }
svg .cell { fill: var(--bad); } svg .line { fill: none; stroke: var(--other); stroke-width: 1.5; }
svg .line.named { stroke: var(--bad); stroke-width: 2.5; }
svg .input { fill: var(--input); } svg .h2d { fill: var(--h2d); } svg .forward { fill: var(--forward); }
svg .backward { fill: var(--backward); } svg .optimizer { fill: var(--optimizer); } svg .comm_exposed { fill: var(--comm); }
svg .checkpoint { fill: var(--checkpoint); } svg .validation { fill: var(--validation); } svg .gc { fill: var(--gc); }
svg .other { fill: var(--other); }
)";

constexpr size_t kMostMemoryRows = 64;
constexpr size_t kMostGroupRows = 64;

std::string Sentences(const std::vector<std::string>& sentences) {
  std::string html;
  for (const std::string& sentence : sentences) html += fmt::format("<p>{}</p>\n", EscapeHtml(sentence));
  return html;
}

std::string Stages(const Accounting& account) {
  std::string html = fmt::format("<h2>Stages of a step</h2>\n<p class=\"faint\">{} steps of {} ranks, {} a step</p>\n",
                                 account.step_count, account.ranks.size(),
                                 report::FormatDuration(account.total_ns / account.step_count));
  html += OpenTable("Stages of a step", {{"Stage", false},
                                         {"Median rank", true},
                                         {"Slowest rank", true},
                                         {"Who", true},
                                         {"Of the job", true},
                                         {"Drawn", false},
                                         {"Imbalance", true},
                                         {"Costs most", false}});
  for (const Stage stage : model::kStages) {
    const StageAccount& each = account.At(stage);
    const auto slowest = std::max_element(each.rank_ns.begin(), each.rank_ns.end());
    if (*slowest == 0) continue;
    std::vector<int64_t> ranks_ns = each.rank_ns;
    html += "<tr>" + TextCell(model::StageName(stage)) +
            NumberCell(report::FormatDuration(LowerMedian(&ranks_ns) / account.step_count)) +
            NumberCell(report::FormatDuration(*slowest / account.step_count)) +
            NumberCell(std::to_string(account.ranks[static_cast<size_t>(slowest - each.rank_ns.begin())])) +
            NumberCell(report::FormatShare(each.frontier_ns, account.total_ns)) +
            fmt::format(
                "<td><svg width=\"120\" height=\"12\" aria-hidden=\"true\"><rect class=\"{}\" width=\"{:.1f}\" "
                "height=\"12\"/></svg></td>",
                model::StageName(stage),
                120 * static_cast<double>(each.frontier_ns) / static_cast<double>(account.total_ns)) +
            NumberCell(report::FormatShare(each.imbalance_ns, account.total_ns)) +
            TextCell(report::CostWords(account, stage)) + "</tr>\n";
  }
  return html + kCloseTable;
}

std::string Groups(const JobStages& job) {
  std::vector<report::GroupRow> rows = report::GroupRows(job);
  if (rows.empty()) return "";
  std::string html = "<h2>Process groups</h2>\n";
  if (rows.size() > kMostGroupRows) {
    html += fmt::format("<p class=\"faint\">The {} of {} groups in which a rank costs most.</p>\n", kMostGroupRows,
                        rows.size());
    rows.resize(kMostGroupRows);
  }
  html += OpenTable("Process groups",
                    {{"Group", false}, {"Ranks", false}, {"Longest wait, a step", true}, {"Costs most", false}});
  for (const report::GroupRow& row : rows) {
    html += "<tr>" + TextCell(row.name) + TextCell(row.ranks) + NumberCell(row.wait) + TextCell(row.cost) + "</tr>\n";
  }
  return html + kCloseTable;
}

std::string OverTime(const JobStages& job) {
  std::string html = "<h2>Steps over time</h2>\n" + Sentences(report::ChangeSentences(job)) + StepsSvg(job);
  if (const std::string costs = CostSvg(job); !costs.empty()) {
    html +=
        "<h3>What ranks cost</h3>\n<p class=\"faint\">By how much the windows would have been shorter without what "
        "the rank takes longer than the median rank; the fuller, the more of the window's time.";
    if (job.account.ranks.size() > kMostCostRows) {
      html += fmt::format(" The {} of {} ranks that cost most.", kMostCostRows, job.account.ranks.size());
    }
    html += "</p>\n" + costs;
  }
  html +=
      "<details><summary>The windows as a table</summary>\n" + OpenTable("Windows of steps", {{"Steps", false},
                                                                                              {"A step", true},
                                                                                              {"Median step", true},
                                                                                              {"Largest stage", false},
                                                                                              {"Its share", true},
                                                                                              {"Costs most", false}});
  for (const Window& window : job.over_time.windows) {
    const std::string cost =
        window.cost_ns == 0 ? ""
                            : fmt::format("rank {} in {}: {}", job.account.ranks[window.rank_idx],
                                          StageName(window.cost_stage), report::FormatShare(window.cost_ns, window.ns));
    html += "<tr>" + TextCell(report::StepRange(window)) +
            NumberCell(report::FormatDuration(window.ns / window.step_count)) +
            NumberCell(report::FormatDuration(window.median_step_ns)) + TextCell(StageName(window.largest_stage)) +
            NumberCell(report::FormatShare(At(window.frontier_ns, window.largest_stage), window.ns)) + TextCell(cost) +
            "</tr>\n";
  }
  return html + kCloseTable + "</details>\n";
}

std::string MemoryTable(const JobStages& job) {
  std::vector<std::pair<int64_t, size_t>> ranks;  // The most of any signal, less its place.
  for (size_t i = 0; i < job.memory.ranks.size(); ++i) {
    int64_t most = -1;
    for (const auto& use : job.memory.ranks[i]) most = std::max(most, use ? use->peak_bytes : -1);
    if (most >= 0) ranks.emplace_back(-most, i);
  }
  if (ranks.empty()) return "";
  std::sort(ranks.begin(), ranks.end());
  std::string html;
  if (ranks.size() > kMostMemoryRows) {
    html += fmt::format("<p class=\"faint\">The {} of {} ranks that need most.</p>\n", kMostMemoryRows, ranks.size());
    ranks.resize(kMostMemoryRows);
  }
  html += OpenTable("Memory at its most", {{"Rank", true},
                                           {"Host", false},
                                           {"Process", true},
                                           {"Allocated by PyTorch", true},
                                           {"Held by PyTorch", true},
                                           {"Device has", true},
                                           {"Host has", true}});
  for (const auto& [bytes, i] : ranks) {
    const model::RankMemory& memory = job.ranks[i].memory;
    html += "<tr>" + NumberCell(std::to_string(job.account.ranks[i])) + TextCell(job.ranks[i].host);
    for (const Signal signal : rank_memory::kSignals) {
      const auto& use = job.memory.ranks[i][static_cast<size_t>(signal)];
      html += NumberCell(use ? report::FormatBytes(use->peak_bytes) : "-");
    }
    html += NumberCell(report::FormatBytes(memory.device_bytes)) + NumberCell(report::FormatBytes(memory.host_bytes)) +
            "</tr>\n";
  }
  return html + kCloseTable;
}

std::string Memory(const JobStages& job) {
  const std::string table = MemoryTable(job);
  if (table.empty()) return "";
  std::vector<std::string> sentences;
  for (const rank_memory::Finding& finding : job.memory.findings) {
    sentences.push_back(report::MemorySentence(job, finding));
  }
  std::string html = "<h2>Memory</h2>\n" + Sentences(sentences);
  for (const Signal signal : rank_memory::kSignals) {
    const std::string lines = MemorySvg(job, signal);
    if (lines.empty()) continue;
    html += fmt::format("<h3>{}</h3>\n{}",
                        signal == Signal::kResident    ? "Of each rank's process"
                        : signal == Signal::kAllocated ? "Allocated by PyTorch"
                                                       : "Held by PyTorch",
                        lines);
  }
  return html + "<h3>At its most</h3>\n" + table;
}

}  // namespace

std::string StagesPage(const JobStages& job) {
  std::string html = OpenPlainPage("What costs the job time", "What costs the job time", kStyle);
  html += fmt::format("<p class=\"verdict\">{}</p>\n<dl><dt>Why</dt><dd>{}</dd><dt>Next</dt><dd>{}</dd></dl>\n",
                      EscapeHtml(report::StagesSentence(job)), EscapeHtml(report::StagesWhy(job)),
                      EscapeHtml(report::StagesNext(job)));
  if (job.account.step_count > 0 && job.account.total_ns > 0) html += Stages(job.account);
  html += Groups(job);
  if (!job.over_time.windows.empty()) html += OverTime(job);
  html += Memory(job);
  std::ostringstream text;
  report::TextOptions options;
  options.width = 110;
  options.top = 20;
  report::WriteStagesText(job, options, text);
  return html + fmt::format(
                    "<h2>As text</h2>\n<details><summary>The whole report</summary><pre tabindex=\"0\">{}</pre>"
                    "</details>\n{}",
                    EscapeHtmlLines(text.str()), kClosePlainPage);
}

}  // namespace lockstep::page
