#include "present/top/job_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/utf8.h"
#include "present/report/bars.h"
#include "present/report/format.h"
#include "present/report/sparkline.h"
#include "present/top/figure_text.h"

namespace lockstep::top {
namespace {

using live::JobView;
using live::NodeView;
using live::RankState;
using live::RankView;
using live::View;
using report::Align;
using report::FormatBytes;
using report::FormatCount;
using report::FormatDuration;
using report::FormatPercent;
using report::Paint;
using report::Style;
using report::TableCell;
using report::TextTable;

constexpr int kBarWidth = 12;
constexpr int kSparkWidth = 12;
// Thresholds of the alarms, from which on a figure is painted.
constexpr double kMuchCommunication = 0.30;
constexpr double kMuchInput = 0.10;
constexpr double kHotCelsius = 85;

std::string Plural(size_t count, const char* what) {
  return fmt::format("{} {}{}", FormatCount(count), what, count == 1 ? "" : "s");
}

TableCell Share(const std::optional<double>& ratio, double much) {
  return {FormatPercent(ratio), ratio.value_or(0) > much ? Paint::kWarn : Paint::kPlain};
}

/// Compute, communication, input and the rest of a step.
std::string PhaseBar(const RankView& rank, const Style& style) {
  if (!rank.compute_ratio) return "-";
  return report::StackedBar({{Paint::kCompute, *rank.compute_ratio},
                             {Paint::kCommunication, rank.communication_ratio.value_or(0)},
                             {Paint::kMemory, rank.input_ratio.value_or(0)}},
                            1, kBarWidth, style);
}

TableCell StateCell(const RankView& rank) { return {live::RankStateName(rank.state), PaintOf(rank.state)}; }

TableCell BehindCell(const RankView& rank) {
  if (!rank.behind_steps) return {"-"};
  return {FormatCount(*rank.behind_steps), *rank.behind_steps > 1 ? Paint::kWarn : Paint::kPlain};
}

std::string_view MarkOf(const RankView& rank, const Style& style) {
  if (rank.state == RankState::kStuck || rank.state == RankState::kUnheard) return "!";
  return rank.state == RankState::kSlow ? style.Pointer() : "";
}

std::optional<double> GpuFigure(const RankView& rank, std::optional<double> live::GpuReading::*field) {
  return rank.gpu ? rank.gpu->reading.*field : std::nullopt;
}

/// What the device has given out, or what PyTorch holds where no sensor says it.
std::optional<double> MemoryBytes(const RankView& rank) {
  const std::optional<double> used = GpuFigure(rank, &live::GpuReading::memory_used_bytes);
  return used ? used : rank.reading.torch_reserved_bytes;
}

}  // namespace

std::string RateText(const std::optional<double>& per_s) {
  if (!per_s) return "-";
  return *per_s >= 1000 ? FormatCount(static_cast<uint64_t>(std::min(*per_s, 9e15))) : fmt::format("{:.3g}", *per_s);
}

Paint PaintOf(RankState state) {
  switch (state) {
    case RankState::kSilent: return Paint::kFaint;
    case RankState::kRuns: return Paint::kGood;
    case RankState::kWaits: return Paint::kPlain;
    case RankState::kSlow: return Paint::kWarn;
    case RankState::kStuck:
    case RankState::kUnheard: return Paint::kBad;
  }
  return Paint::kPlain;
}

std::string JobHeadline(const JobView& job, const Style& style) {
  std::string text = style(Paint::kStrong, "job " + Printable(job.job_id));
  const auto heard = static_cast<size_t>(std::count_if(
      job.ranks.begin(), job.ranks.end(), [](const RankView& rank) { return rank.state != RankState::kUnheard; }));
  if (job.world_size) {
    const std::string ranks = fmt::format("{} of {}", FormatCount(heard), Plural(*job.world_size, "rank"));
    text += std::string(style.Dot()) + (heard < *job.world_size ? style(Paint::kWarn, ranks) : ranks);
  } else {
    text += std::string(style.Dot()) + Plural(heard, "rank");
  }
  text += fmt::format("{}{} steps/s", style.Dot(), RateText(job.steps_per_s));
  text += fmt::format("{}step {}", style.Dot(), FormatDuration(job.step_ns));
  text += fmt::format("{}compute {}", style.Dot(), FormatPercent(job.compute_ratio));
  const std::string communication = "exposed communication " + FormatPercent(job.communication_ratio);
  text += style.Dot();
  text += job.communication_ratio.value_or(0) > kMuchCommunication ? style(Paint::kWarn, communication) : communication;
  text += fmt::format("{}input {}", style.Dot(), FormatPercent(job.input_ratio));
  text += fmt::format("{}MFU {}", style.Dot(), FormatPercent(job.mfu_ratio));
  if (job.samples_per_s) text += fmt::format("{}{} samples/s", style.Dot(), RateText(job.samples_per_s));
  if (job.tokens_per_s) text += fmt::format("{}{} tokens/s", style.Dot(), RateText(job.tokens_per_s));
  return text;
}

std::vector<Line> AnswerLines(const JobView& job) {
  std::vector<Line> lines;
  std::set<std::string_view> awaited;
  for (const RankView& rank : job.ranks) {
    if (rank.state == RankState::kStuck && rank.waits_for_rank) awaited.insert(*rank.waits_for_rank);
  }
  for (const RankView& rank : job.ranks) {
    if (awaited.size() != 1 || !awaited.contains(rank.rank)) continue;
    std::string text = fmt::format("rank {} holds the job up", Printable(rank.rank));
    if (const std::string words = PhaseWords(rank); !words.empty()) {
      text += fmt::format(": it {} for {}", words, FormatDuration(rank.open_phase_ns));
    }
    lines.push_back({std::move(text), Paint::kBad});
  }
  if (job.stages) {
    lines.push_back({"stages: " + Printable(job.stages->sentence), job.stages->rank ? Paint::kWarn : Paint::kPlain});
  }
  return lines;
}

TextTable RankTable(const std::vector<const RankView*>& ranks, const Style& style) {
  TextTable table({{.header = "", .align = Align::kLeft},
                   {.header = "rank"},
                   {.header = "host", .align = Align::kLeft, .drop = 8},
                   {.header = "state", .align = Align::kLeft},
                   {.header = "waits for", .drop = 1},
                   {.header = "step", .drop = 3},
                   {.header = "behind", .drop = 6},
                   {.header = "last ended", .drop = 5},
                   {.header = "time"},
                   {.header = "own", .drop = 2},
                   {.header = "comp"},
                   {.header = "comm"},
                   {.header = "input", .drop = 4},
                   {.header = "", .align = Align::kLeft, .drop = 9},
                   {.header = "gpu", .drop = 7},
                   {.header = "mem", .drop = 10},
                   {.header = "temp", .drop = 11},
                   {.header = "power", .drop = 12},
                   {.header = "pace", .align = Align::kLeft, .drop = 13}});
  for (const RankView* rank : ranks) {
    const std::optional<double> temperature = GpuFigure(*rank, &live::GpuReading::temperature_celsius);
    const bool is_old = rank->state == RankState::kStuck || rank->state == RankState::kUnheard;
    table.AddRow(
        {TableCell(std::string(MarkOf(*rank, style)), PaintOf(rank->state)), Printable(rank->rank), OrDash(rank->host),
         StateCell(*rank), rank->waits_for_rank ? Printable(*rank->waits_for_rank) : std::string("-"),
         rank->step_count ? FormatCount(*rank->step_count) : std::string("-"), BehindCell(*rank),
         TableCell(FormatDuration(rank->progress_age_ns), is_old ? Paint::kBad : Paint::kPlain),
         FormatDuration(rank->step_ns),
         TableCell(FormatDuration(rank->own_ns), rank->state == RankState::kSlow ? Paint::kWarn : Paint::kPlain),
         FormatPercent(rank->compute_ratio), Share(rank->communication_ratio, kMuchCommunication),
         Share(rank->input_ratio, kMuchInput), PhaseBar(*rank, style),
         FormatPercent(GpuFigure(*rank, &live::GpuReading::utilization_ratio)),
         FormatBytes(WholeFigure(MemoryBytes(*rank))),
         TableCell(RoundedText(temperature, style.unicode ? "°C" : "C"),
                   temperature.value_or(0) >= kHotCelsius ? Paint::kWarn : Paint::kPlain),
         RoundedText(rank->gpu ? rank->gpu->power_watts : std::nullopt, "W"),
         Sparkline(rank->step_history, kSparkWidth, style)});
  }
  return table;
}

namespace {

/// How many ranks a node has, and which is its worst.
struct NodeRanks {
  size_t count = 0;
  const RankView* worst = nullptr;
};

std::vector<NodeRanks> RanksOfNodes(const View& view) {
  std::vector<NodeRanks> nodes(view.nodes.size());
  for (const JobView& job : view.jobs) {
    for (const RankView& rank : job.ranks) {
      NodeRanks& node = nodes[rank.node_idx];
      ++node.count;
      if (node.worst == nullptr || live::IsWorse(rank, *node.worst)) node.worst = &rank;
    }
  }
  return nodes;
}

}  // namespace

std::vector<size_t> NodesWorstFirst(const View& view) {
  const std::vector<NodeRanks> ranks = RanksOfNodes(view);
  std::vector<size_t> order(view.nodes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const bool a_fails = view.nodes[a].error.has_value();
    const bool b_fails = view.nodes[b].error.has_value();
    if (a_fails != b_fails) return a_fails;
    if (ranks[a].worst == nullptr || ranks[b].worst == nullptr)
      return ranks[b].worst == nullptr && ranks[a].worst != nullptr;
    return live::IsWorse(*ranks[a].worst, *ranks[b].worst);
  });
  return order;
}

TextTable NodeTable(const View& view, const std::vector<size_t>& nodes) {
  TextTable table({{.header = "node", .align = Align::kLeft, .flexible = true},
                   {.header = "state", .align = Align::kLeft},
                   {.header = "ranks"},
                   {.header = "worst rank"},
                   {.header = "clock off by", .drop = 2},
                   {.header = "gpus", .drop = 3},
                   {.header = "gpu", .drop = 4},
                   {.header = "lockstepd", .align = Align::kLeft, .drop = 1}});
  const std::vector<NodeRanks> ranks = RanksOfNodes(view);
  for (const size_t i : nodes) {
    const NodeView& node = view.nodes[i];
    const RankView* worst = ranks[i].worst;
    std::optional<double> utilization;
    for (const live::GpuView& gpu : node.gpus) {
      if (gpu.reading.utilization_ratio) utilization = utilization.value_or(0) + *gpu.reading.utilization_ratio;
    }
    if (utilization) *utilization /= static_cast<double>(node.gpus.size());
    const std::string state = !node.error      ? std::string("answers")
                              : node.silent_ns ? "silent for " + FormatDuration(*node.silent_ns)
                                               : std::string("never answered");
    table.AddRow(
        {OrDash(node.host), TableCell(state, node.error ? Paint::kBad : Paint::kGood), FormatCount(ranks[i].count),
         worst == nullptr ? TableCell("-")
                          : TableCell(fmt::format("{} {}", Printable(worst->rank), live::RankStateName(worst->state)),
                                      PaintOf(worst->state)),
         FormatDuration(node.clock_offset_ns), FormatCount(node.gpus.size()), FormatPercent(utilization),
         OrDash(node.version)});
  }
  return table;
}

std::vector<Line> AlarmLines(const View& view, const JobView* job) {
  std::vector<const live::Alarm*> alarms;
  if (job != nullptr) {
    for (const live::Alarm& alarm : job->alarms) alarms.push_back(&alarm);
  }
  for (const NodeView& node : view.nodes) {
    for (const live::Alarm& alarm : node.alarms) alarms.push_back(&alarm);
  }
  std::stable_sort(alarms.begin(), alarms.end(),
                   [](const live::Alarm* a, const live::Alarm* b) { return a->severity > b->severity; });
  std::vector<Line> lines;
  for (const live::Alarm* alarm : alarms) {
    const Paint paint = alarm->severity == live::AlarmSeverity::kCritical  ? Paint::kBad
                        : alarm->severity == live::AlarmSeverity::kWarning ? Paint::kWarn
                                                                           : Paint::kPlain;
    lines.push_back({fmt::format("{}: {}", live::AlarmSeverityName(alarm->severity), Printable(alarm->text)), paint});
  }
  return lines;
}

std::vector<Line> QualityLines(const View& view) {
  std::vector<Line> lines;
  for (const NodeView& node : view.nodes) {
    const std::string host = Printable(node.host);
    if (node.error) {
      const std::string silence = node.silent_ns
                                      ? fmt::format("has not answered for {}", FormatDuration(*node.silent_ns))
                                      : std::string("does not answer");
      lines.push_back({fmt::format("{} {}: {}", host, silence, Printable(node.error->ToString())), Paint::kBad});
      continue;
    }
    for (const auto& [name, collector] : node.collectors) {
      if (collector.present.value_or(1) > 0 && collector.success && *collector.success == 0) {
        lines.push_back({fmt::format("{}: its collector {} fails", host, Printable(name)), Paint::kWarn});
      }
    }
    if (node.bad_line_count > 0) {
      lines.push_back(
          {fmt::format("{}: {} of its metrics could not be read", host, Plural(node.bad_line_count, "line")),
           Paint::kWarn});
    }
    if (node.is_cut) {
      lines.push_back({host + ": it reports more than is kept for one node; some of it is not shown", Paint::kWarn});
    }
  }
  for (const JobView& job : view.jobs) {
    size_t silent = 0;
    double dropped = 0;
    for (const RankView& rank : job.ranks) {
      silent += rank.state == RankState::kSilent && !rank.reading.events ? 1 : 0;
      dropped += rank.reading.dropped_events.value_or(0);
    }
    if (dropped > 0) {
      lines.push_back({fmt::format("job {}: {} records of its ranks were dropped, so that its figures are too small",
                                   Printable(job.job_id), FormatCount(static_cast<uint64_t>(std::min(dropped, 9e15)))),
                       Paint::kWarn});
    }
    if (silent > 0) {
      lines.push_back({fmt::format("job {}: {} nothing (LOCKSTEP_TRACE, docs/instrument.md)", Printable(job.job_id),
                                   silent == 1 ? "1 rank records" : FormatCount(silent) + " ranks record"),
                       Paint::kFaint});
    }
  }
  return lines;
}

}  // namespace lockstep::top
