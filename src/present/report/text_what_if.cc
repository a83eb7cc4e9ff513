#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "analysis/finding.h"
#include "analysis/what_if/pipeline_bubbles.h"
#include "analysis/what_if/what_if.h"
#include "present/report/bars.h"
#include "present/report/format.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"
#include "present/report/verdict.h"

namespace lockstep::report {
namespace {

using analysis::StudyShare;
using analysis::WhatIf;

std::string Ratio(const std::optional<double>& ratio) { return ratio ? fmt::format("{:.0f} %", 100 * *ratio) : "-"; }

// Below this a change does nothing that a simulation could tell.
constexpr double kMinimumGain = 0.0005;

void WriteLevers(const TextPage& page, size_t limit) {
  const WhatIf& what_if = page.result.Get<analysis::WhatIf>();
  TextTable table(
      {{"if", Align::kLeft, true, 0, Shorten::kEnd, 24}, {"step"}, {"gain"}, {""}, {"", Align::kLeft, false, 1}});
  size_t worth = 0;
  for (const analysis::Lever& lever : what_if.levers) {
    if (lever.gain_ratio < kMinimumGain) continue;
    if (page.options.rank && !lever.ranks.empty() &&
        std::find(lever.ranks.begin(), lever.ranks.end(), *page.options.rank) == lever.ranks.end()) {
      continue;
    }
    if (worth++ >= limit) continue;
    table.AddRow(
        {Printable(lever.title), FormatDuration(lever.step_ns), FormatDuration(lever.gain_ns),
         FormatPercent(lever.gain_ratio),
         PlainBar(Paint::kGood, lever.gain_ratio, 1.0, std::clamp(page.options.width - 72, 0, 20), page.style)});
  }
  if (table.empty()) {
    page.Paragraph("No change that was tried gains anything.");
    return;
  }
  page.Write(table, worth);
}

void WriteShares(const TextPage& page, const char* what, const std::vector<StudyShare>& shares) {
  std::vector<StudyShare> sorted = shares;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const StudyShare& a, const StudyShare& b) { return a.slowdown > b.slowdown; });
  std::string line;
  for (size_t i = 0; i < sorted.size() && i < page.options.top; ++i) {
    line += fmt::format("{}{} {:.3f}", i == 0 ? "" : ", ", Printable(sorted[i].name), sorted[i].slowdown);
  }
  if (sorted.size() > page.options.top) line += fmt::format(", {} more", sorted.size() - page.options.top);
  WriteWrapped(fmt::format("{}: {}", what, line), "  ", "    ", page.options.width, page.out);
}

void WriteStudy(const TextPage& page) {
  if (!page.result.Get<analysis::WhatIf>().study) return;
  const analysis::StragglerStudy& study = *page.result.Get<analysis::WhatIf>().study;
  page.Paragraph(fmt::format("Slowdown by stragglers (S): {:.3f}; by launch delays: {:.3f}.", study.slowdown,
                             study.launch_slowdown));
  page.Paragraph(
      fmt::format("Of what stragglers cost, the slowest 3 % of the workers explain {} (M_W), the last stage {} "
                  "(M_S).",
                  Ratio(study.slow_workers_ratio), Ratio(study.last_stage_ratio)));
  page.Paragraph("Slowdown of the ideal job by the real work of one part of it alone:");
  WriteShares(page, "stage", study.by_stage);
  WriteShares(page, "DP rank", study.by_data_rank);
  WriteShares(page, "operation", study.by_operation);
}

void WriteSimulation(const TextPage& page) {
  const WhatIf& what_if = page.result.Get<analysis::WhatIf>();
  page.Paragraph(fmt::format("A step takes {} as observed and {} as simulated ({} off); gains are from the latter.",
                             FormatDuration(what_if.observed_step_ns), FormatDuration(what_if.simulated_step_ns),
                             FormatPercent(what_if.error_ratio)),
                 Paint::kFaint);
}

void WriteOperationJob(const TextPage& page) {
  const model::OperationTrace& trace = *page.run.operations;
  int32_t stages = 0;
  int32_t pipelines = 0;
  for (const model::Operation& operation : trace.operations) {
    stages = std::max(stages, operation.stage + 1);
    pipelines = std::max(pipelines, operation.data_rank + 1);
  }
  const std::string dot(page.style.Dot());
  WriteWrapped(fmt::format("{}{}{}{}{}{}operation trace", Plural(page.run.ranks.size(), "worker"), dot,
                           Plural(static_cast<uint64_t>(pipelines), "pipeline"), " of ",
                           Plural(static_cast<uint64_t>(stages), "stage"), dot),
               "", "  ", page.options.width, page.out, Paint::kStrong, page.style);
  WriteWrapped(fmt::format("{}{}{} in all{}{}", Plural(static_cast<uint64_t>(page.result.step_count), "step"), dot,
                           FormatDuration(page.result.job_span_ns), dot, Plural(trace.operations.size(), "operation")),
               "", "  ", page.options.width, page.out);
}

}  // namespace

void WriteWhatIfSection(const TextPage& page) {
  page.Heading("WHAT IF", "step times by simulation, largest gain first");
  WriteLevers(page, page.options.top);
  WriteSimulation(page);
  WriteStudy(page);
}

void WriteBubblesSection(const TextPage& page) {
  const analysis::Bubbles& bubbles = page.result.Get<analysis::Bubbles>();
  page.Heading("BUBBLES", "share of a stage's window without forward or backward work");
  if (bubbles.steps.empty()) {
    page.Paragraph("No pipeline of two stages or more.");
    return;
  }
  struct Sum {
    double busy_ns = 0;
    double window_ns = 0;
    double ratio = 0;
    double count = 0;
    std::optional<int64_t> memory_bytes;
  };
  std::map<int64_t, bool> warm_up;
  double ratio = 0;
  double ideal = 0;
  double steps = 0;
  for (const analysis::PipelineStepRow& row : bubbles.steps) {
    warm_up[row.step] = warm_up[row.step] || row.warm_up;
    if (row.warm_up || (page.options.step && row.step != *page.options.step)) continue;
    ratio += row.bubble_ratio;
    ideal += row.ideal_bubble_ratio;
    ++steps;
  }
  std::map<int32_t, Sum> stages;
  for (const analysis::BubbleRow& row : bubbles.stages) {
    if (page.options.step ? row.step != *page.options.step : warm_up[row.step]) continue;
    Sum& sum = stages[row.stage];
    sum.busy_ns += static_cast<double>(row.busy_ns);
    sum.window_ns += static_cast<double>(row.window_ns);
    sum.ratio += row.bubble_ratio;
    if (row.memory_bytes) sum.memory_bytes = std::max(sum.memory_bytes.value_or(0), *row.memory_bytes);
    ++sum.count;
  }
  TextTable table({{"stage"}, {"window"}, {"busy"}, {"bubble"}, {"memory"}, {"", Align::kLeft, false, 1}});
  for (const auto& [stage, sum] : stages) {
    table.AddRow(
        {fmt::format("{}", stage), FormatDuration(static_cast<int64_t>(sum.window_ns / sum.count)),
         FormatDuration(static_cast<int64_t>(sum.busy_ns / sum.count)), FormatPercent(sum.ratio / sum.count),
         FormatBytes(sum.memory_bytes),
         PlainBar(Paint::kIdle, sum.ratio / sum.count, 1.0, std::clamp(page.options.width - 50, 8, 40), page.style)});
  }
  page.Write(table, stages.size());
  if (steps > 0) {
    page.Paragraph(fmt::format("Over all stages and the whole iteration {}; an even pipeline of this size idles {}.",
                               FormatPercent(ratio / steps), FormatPercent(ideal / steps)));
  }
  for (const auto& [step, warm] : warm_up) {
    if (warm) page.Paragraph(fmt::format("Step {} is warm-up and not in the means.", step), Paint::kFaint);
  }
}

void WriteOperationScreen(const TextPage& page) {
  WriteOperationJob(page);
  WriteHeadlines(page);
  if (page.result.Has<analysis::WhatIf>()) {
    page.Heading("WHAT IF", "step times by simulation, largest gain first");
    WriteLevers(page, std::min<size_t>(page.options.top, 6));
    WriteSimulation(page);
  } else if (page.result.Has<analysis::Bubbles>()) {
    WriteBubblesSection(page);
  }
}

}  // namespace lockstep::report
