#include "present/top/top_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "present/report/format.h"
#include "present/top/device_table.h"
#include "present/top/job_tables.h"
#include "present/top/serving_tables.h"

namespace lockstep::top {
namespace {

using report::Paint;
using report::Style;

void WriteJobText(const live::View& view, const live::JobView& job, const report::TextOptions& options,
                  std::ostream& out) {
  const Style style{options.colour, options.unicode};
  out << '\n';
  report::WriteWrapped(JobHeadline(job, style), "", "  ", options.width, out);
  // Devices' alarms belong to no job; they are below.
  live::View devices_aside;
  std::vector<Line> lines = AnswerLines(job);
  for (Line& line : AlarmLines(devices_aside, &job)) lines.push_back(std::move(line));
  for (const Line& line : lines) {
    report::WriteWrapped(line.text, fmt::format("  {} ", style.Bullet()), "    ", options.width, out, line.paint,
                         style);
  }
  std::vector<const live::RankView*> ranks;
  for (const live::RankView& rank : job.ranks) ranks.push_back(&rank);
  std::sort(ranks.begin(), ranks.end(),
            [](const live::RankView* a, const live::RankView* b) { return live::IsWorse(*a, *b); });
  const size_t count = ranks.size();
  if (options.top > 0 && count > options.top) ranks.resize(options.top);
  report::TextTable table = RankTable(ranks, style);
  if (ranks.size() < count) table.AddNote(fmt::format("{} more ranks", count - ranks.size()));
  if (count > 0) table.Write(style, options.width, out);
  const bool has_old =
      std::any_of(ranks.begin(), ranks.end(), [](const live::RankView* rank) { return rank->is_since_start; });
  if (has_old) {
    report::WriteWrapped(
        fmt::format("On some ranks no step ended within {}: their figures are means since they started.",
                    report::FormatDuration(view.window_ns)),
        "  ", "  ", options.width, out, Paint::kFaint, style);
  }
  for (const report::TextTable& requests : {ServingTable(job), EngineTable(job)}) {
    if (requests.empty()) continue;
    out << '\n';
    requests.Write(style, options.width, out);
  }
}

}  // namespace

void WriteTopText(const live::View& view, const report::TextOptions& options, std::ostream& out) {
  const Style style{options.colour, options.unicode};
  const size_t answered = view.answered_count();
  std::string summary =
      fmt::format("{} of {} node{} answered{}{} job{}", answered, view.nodes.size(), view.nodes.size() == 1 ? "" : "s",
                  style.Dot(), view.jobs.size(), view.jobs.size() == 1 ? "" : "s");
  if (view.look_count > 1) {
    summary +=
        fmt::format("{}{} looks, {} apart", style.Dot(), view.look_count, report::FormatDuration(view.window_ns));
  }
  report::WriteWrapped(summary, "", "  ", options.width, out);
  if (view.jobs.empty() && answered > 0) {
    out << '\n';
    report::WriteWrapped(
        "No rank of a job runs there: ranks are processes whose launcher says so (RANK, SLURM_PROCID, ...).", "", "",
        options.width, out);
  }
  for (const live::JobView& job : view.jobs) WriteJobText(view, job, options, out);
  if (const report::TextTable devices = DividedDeviceTable(view, style); !devices.empty()) {
    out << '\n';
    devices.Write(style, options.width, out);
  }
  std::vector<Line> lines = AlarmLines(view, nullptr);
  for (Line& line : QualityLines(view)) lines.push_back(std::move(line));
  if (!lines.empty()) out << '\n';
  for (const Line& line : lines) {
    report::WriteWrapped(line.text, fmt::format("{} ", style.Bullet()), "  ", options.width, out, line.paint, style);
  }
}

}  // namespace lockstep::top
