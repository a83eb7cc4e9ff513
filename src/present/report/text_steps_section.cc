#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/breakdown.h"
#include "present/report/bars.h"
#include "present/report/format.h"
#include "present/report/text_page.h"

namespace lockstep::report {
namespace {

// One step over the ranks.
struct StepLine {
  int64_t number = 0;
  int32_t window = 0;
  int64_t rank_count = 0;
  int64_t span_ns = 0;  // sums over ranks
  int64_t compute_ns = 0;
  int64_t exposed_ns = 0;
  int64_t memory_ns = 0;
  int64_t idle_ns = 0;
  int64_t longest_ns = -1;
  size_t longest_rank = 0;
};

std::vector<StepLine> Lines(const TextPage& page) {
  std::map<std::pair<int32_t, int64_t>, StepLine> lines;
  for (const analysis::BreakdownRow& row : page.result.Get<analysis::Breakdown>().steps) {
    if (!page.Shows(row.rank_index) || !row.step_number || row.basis == analysis::Basis::kNone) continue;
    if (page.options.step && row.step_number != page.options.step) continue;
    const int32_t window = page.run.ranks[row.rank_index].window;
    StepLine& line = lines[{window, *row.step_number}];
    line.number = *row.step_number;
    line.window = window;
    ++line.rank_count;
    line.span_ns += row.span_ns;
    line.compute_ns += row.compute_ns;
    line.exposed_ns += row.exposed_communication_ns;
    line.memory_ns += row.exposed_memory_ns;
    line.idle_ns += row.idle_ns;
    if (row.span_ns > line.longest_ns) {
      line.longest_ns = row.span_ns;
      line.longest_rank = row.rank_index;
    }
  }
  std::vector<StepLine> ordered;
  for (const auto& [key, line] : lines) ordered.push_back(line);
  return ordered;
}

}  // namespace

void WriteStepsSection(const TextPage& page) {
  std::vector<StepLine> lines = Lines(page);
  const bool all = lines.size() <= page.options.top;
  page.Heading("STEPS", all ? "mean over ranks" : "mean over ranks; the longest steps first");
  if (lines.empty()) {
    page.Paragraph(page.result.Get<analysis::Breakdown>().steps.empty()
                       ? "No steps are marked: call profiler.step(), or name an annotation with --step-name."
                       : "No such step.");
    return;
  }
  const auto mean = [](int64_t sum, const StepLine& line) { return sum / line.rank_count; };
  int64_t longest = 0;
  for (const StepLine& line : lines) longest = std::max(longest, mean(line.span_ns, line));
  if (!all) {
    std::stable_sort(lines.begin(), lines.end(),
                     [&](const StepLine& a, const StepLine& b) { return mean(a.span_ns, a) > mean(b.span_ns, b); });
  }
  const bool windows = std::any_of(lines.begin(), lines.end(), [](const StepLine& line) { return line.window > 0; });
  TextTable table({{"step"},
                   {"ranks", Align::kRight, false, 2},
                   {"time"},
                   {"compute"},
                   {"exposed"},
                   {"idle"},
                   {"longest"},
                   {"on rank"},
                   {"", Align::kLeft, false, 1}});
  const int bar_width = std::clamp(page.options.width - 68, 8, 40);
  for (size_t i = 0; i < lines.size() && i < page.options.top; ++i) {
    const StepLine& line = lines[i];
    const std::string bar = StackedBar({{Paint::kCompute, static_cast<double>(mean(line.compute_ns, line))},
                                        {Paint::kCommunication, static_cast<double>(mean(line.exposed_ns, line))},
                                        {Paint::kMemory, static_cast<double>(mean(line.memory_ns, line))},
                                        {Paint::kIdle, static_cast<double>(mean(line.idle_ns, line))}},
                                       static_cast<double>(longest), bar_width, page.style);
    table.AddRow({windows ? fmt::format("{} w{}", line.number, line.window) : fmt::format("{}", line.number),
                  fmt::format("{}", line.rank_count), FormatDuration(mean(line.span_ns, line)),
                  FormatDuration(mean(line.compute_ns, line)), FormatDuration(mean(line.exposed_ns, line)),
                  FormatDuration(mean(line.idle_ns, line)), FormatDuration(line.longest_ns),
                  page.RankLabel(line.longest_rank), bar});
  }
  page.Write(table, lines.size());
}

}  // namespace lockstep::report
