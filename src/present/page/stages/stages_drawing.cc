#include "present/page/stages/stages_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "analysis/frontier/increments.h"
#include "model/stages/stage.h"
#include "present/report/format.h"
#include "present/report/stages/stages_report.h"

namespace lockstep::page {
namespace {

using frontier::JobStages;
using frontier::Window;
using model::MemorySample;
using model::Stage;

constexpr int kWidth = 900, kLeft = 92, kRight = 16, kTop = 14, kBottom = 40;
constexpr double kPlotWidth = kWidth - kLeft - kRight;

std::string OpenSvg(const std::string& label, int height) {
  return fmt::format(
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><svg role=\"img\" width=\"{1}\" "
      "height=\"{2}\" viewBox=\"0 0 {1} {2}\"><title>{0}</title>\n",
      label, kWidth, height);
}

/// Lines at a quarter each, with what they stand for.
template <typename Format>
std::string Grid(int height, double most, const Format& format) {
  std::string svg;
  for (int i = 0; i <= 4; ++i) {
    const double y = height - kBottom - (height - kTop - kBottom) * i / 4.0;
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text class=\"axis\" x=\"{}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{}</text>\n",
        kLeft, y, kWidth - kRight, kLeft - 6, y + 4, format(most * i / 4));
  }
  return svg;
}

/// Below the columns of windows: about eight numbers of steps.
std::string StepAxis(const std::vector<Window>& windows, int y) {
  std::string svg;
  const size_t stride = (windows.size() + 7) / 8;
  for (size_t i = 0; i < windows.size(); i += stride) {
    svg += fmt::format("<text class=\"axis\" x=\"{:.1f}\" y=\"{}\">{}</text>\n",
                       kLeft + kPlotWidth * static_cast<double>(i) / static_cast<double>(windows.size()), y,
                       windows[i].first_step);
  }
  return svg + fmt::format("<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"end\">step</text>\n", kWidth - kRight,
                           y + 17);
}

double StepNs(const Window& window) { return static_cast<double>(window.ns) / static_cast<double>(window.step_count); }

std::string StepWords(const Window& window) {
  return (window.first_step == window.last_step ? "step " : "steps ") + report::StepRange(window);
}

std::string Key(const JobStages& job) {
  std::string html = "<ul class=\"key\">";
  for (const Stage stage : model::kStages) {
    if (job.account.At(stage).frontier_ns == 0) continue;
    html += KeyItem(model::StageName(stage), model::StageName(stage));
  }
  return html + "</ul>\n";
}

const std::vector<MemorySample>& SamplesOf(const model::RankMemory& memory, rank_memory::Signal signal) {
  return rank_memory::SeriesOf(memory, signal).samples();
}

}  // namespace

std::string StepsSvg(const JobStages& job) {
  constexpr int kHeight = 320;
  const std::vector<Window>& windows = job.over_time.windows;
  double most_ns = 1;
  for (const Window& window : windows) most_ns = std::max(most_ns, StepNs(window));
  std::string svg = OpenSvg("Time a step by its stages, over the run", kHeight);
  svg += Grid(kHeight, most_ns, [](double ns) { return report::FormatMeanDuration(ns); });
  const double width = kPlotWidth / static_cast<double>(windows.size());
  for (size_t i = 0; i < windows.size(); ++i) {
    const Window& window = windows[i];
    const double x = kLeft + width * static_cast<double>(i);
    double y = kHeight - kBottom;
    svg += "<g>";
    std::string parts;
    for (const Stage stage : frontier::kOrder) {
      const int64_t ns = model::At(window.frontier_ns, stage);
      if (ns == 0) continue;
      const double height =
          static_cast<double>(ns) / static_cast<double>(window.step_count) / most_ns * (kHeight - kTop - kBottom);
      y -= height;
      svg += fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>",
                         model::StageName(stage), x, y, width * 0.92, height);
      parts += fmt::format(", {} {}", model::StageName(stage), report::FormatShare(ns, window.ns));
    }
    svg += fmt::format("<title>{}: {} a step{}</title></g>\n", StepWords(window),
                       report::FormatMeanDuration(StepNs(window)), parts);
  }
  return svg + StepAxis(windows, kHeight - kBottom + 17) + "</svg></div>\n" + Key(job);
}

std::string CostSvg(const JobStages& job) {
  const std::vector<Window>& windows = job.over_time.windows;
  std::vector<std::pair<int64_t, size_t>> ranks;  // What it cost, less its place.
  for (size_t i = 0; i < job.account.ranks.size(); ++i) {
    int64_t ns = 0;
    for (const Window& window : windows) ns += window.rank_cost_ns[i];
    ranks.emplace_back(-ns, i);
  }
  std::sort(ranks.begin(), ranks.end());
  if (ranks.empty() || ranks.front().first == 0) return "";
  if (ranks.size() > kMostCostRows) ranks.resize(kMostCostRows);
  std::sort(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const int row = ranks.size() > 16 ? 12 : 22;
  const int bottom = kTop + row * static_cast<int>(ranks.size());
  double most = 0;
  const auto share = [](const Window& window, size_t rank_idx) {
    return window.ns > 0 ? static_cast<double>(window.rank_cost_ns[rank_idx]) / static_cast<double>(window.ns) : 0;
  };
  for (const Window& window : windows) {
    for (const auto& [ns, i] : ranks) most = std::max(most, share(window, i));
  }
  std::string svg = OpenSvg("What each rank cost the job, over the run", bottom + kBottom);
  const double width = kPlotWidth / static_cast<double>(windows.size());
  for (size_t at = 0; at < ranks.size(); ++at) {
    const size_t rank_idx = ranks[at].second;
    const int y = kTop + row * static_cast<int>(at);
    svg += fmt::format("<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"end\">rank {}</text>\n", kLeft - 6,
                       y + row / 2 + 4, job.account.ranks[rank_idx]);
    for (size_t i = 0; i < windows.size(); ++i) {
      const double part = share(windows[i], rank_idx);
      svg += fmt::format(
          "<rect class=\"cell\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" "
          "fill-opacity=\"{:.2f}\"><title>rank "
          "{}, {}: {}</title></rect>",
          kLeft + width * static_cast<double>(i), y, width, row, 0.04 + 0.92 * part / most, job.account.ranks[rank_idx],
          StepWords(windows[i]), report::FormatPercent(part));
    }
    svg += '\n';
  }
  return svg + StepAxis(windows, bottom + 17) + "</svg></div>\n";
}

std::string MemorySvg(const JobStages& job, rank_memory::Signal signal) {
  constexpr int kHeight = 260;
  std::set<size_t> named;
  for (const rank_memory::Finding& finding : job.memory.findings) {
    if (finding.signal == signal && finding.rank_idx) named.insert(*finding.rank_idx);
  }
  std::vector<size_t> drawn(named.begin(), named.end());
  for (size_t i = 0; i < job.ranks.size(); ++i) {
    if (!named.contains(i)) drawn.push_back(i);
  }
  std::erase_if(drawn, [&](size_t i) { return SamplesOf(job.ranks[i].memory, signal).size() < 2; });
  if (drawn.empty()) return "";
  if (drawn.size() > kMostMemoryLines) drawn.resize(kMostMemoryLines);
  std::reverse(drawn.begin(), drawn.end());  // Those that are named lie above the others.
  int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN;
  double most = 1;
  for (const size_t i : drawn) {
    for (const MemorySample& sample : SamplesOf(job.ranks[i].memory, signal)) {
      begin_ns = std::min(begin_ns, sample.time_ns);
      end_ns = std::max(end_ns, sample.time_ns);
      most = std::max(most, static_cast<double>(sample.bytes));
    }
  }
  const double span_ns = std::max(static_cast<double>(end_ns) - static_cast<double>(begin_ns), 1.0);
  const bool is_process = signal == rank_memory::Signal::kResident;
  std::string svg = OpenSvg(
      is_process ? "Memory of each rank's process" : fmt::format("Memory {} by PyTorch", SignalName(signal)), kHeight);
  svg += Grid(kHeight, most, [](double bytes) { return report::FormatBytes(static_cast<int64_t>(bytes)); });
  for (const size_t i : drawn) {
    std::string points;
    for (const MemorySample& sample : SamplesOf(job.ranks[i].memory, signal)) {
      points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ",
                            kLeft + kPlotWidth * static_cast<double>(sample.time_ns - begin_ns) / span_ns,
                            kHeight - kBottom - static_cast<double>(sample.bytes) / most * (kHeight - kTop - kBottom));
    }
    svg += fmt::format("<g><polyline class=\"{}\" points=\"{}\"/><title>rank {}</title></g>\n",
                       named.contains(i) ? "line named" : "line", points, job.account.ranks[i]);
  }
  svg += fmt::format(
      "<text class=\"axis\" x=\"{}\" y=\"{}\">0</text><text class=\"axis\" x=\"{}\" y=\"{}\" "
      "text-anchor=\"end\">{}</text>\n",
      kLeft, kHeight - kBottom + 17, kWidth - kRight, kHeight - kBottom + 17, report::FormatMeanDuration(span_ns));
  return svg + "</svg></div>\n";
}

}  // namespace lockstep::page
