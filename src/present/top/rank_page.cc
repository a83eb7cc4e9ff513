#include "present/top/rank_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "model/stages/stage.h"
#include "present/report/bars.h"
#include "present/report/format.h"
#include "present/report/sparkline.h"
#include "present/report/utf8.h"
#include "present/top/figure_text.h"
#include "present/top/job_tables.h"
#include "present/top/serving_tables.h"

namespace lockstep::top {
namespace {

using live::RankView;
using report::FormatBytes;
using report::FormatDuration;
using report::FormatPercent;
using report::Paint;
using report::Style;

constexpr int kMostBarWidth = 60;
constexpr size_t kMostValues = 64;

std::string Count(const std::optional<double>& value) {
  const std::optional<int64_t> whole = WholeFigure(value);
  return whole ? report::FormatCount(static_cast<uint64_t>(*whole)) : "-";
}

Paint PaintOfPhase(model::Stage phase) {
  switch (phase) {
    case model::Stage::kForward:
    case model::Stage::kBackward:
    case model::Stage::kOptimizer: return Paint::kCompute;
    case model::Stage::kCommunication: return Paint::kCommunication;
    case model::Stage::kInput:
    case model::Stage::kHostToDevice:
    case model::Stage::kCheckpoint:
    case model::Stage::kValidation: return Paint::kMemory;
    case model::Stage::kGarbageCollection:
    case model::Stage::kOther: return Paint::kIdle;
  }
  return Paint::kPlain;
}

class Lines {
 public:
  Lines(int width, const Style& style) : width_(width), style_(style) {}
  void Heading(std::string_view text) {
    if (!lines_.empty()) lines_.emplace_back();
    lines_.push_back(style_(Paint::kStrong, text));
  }
  void Add(std::string text) { lines_.push_back("  " + report::Truncate(text, width_ - 2, style_.Ellipsis())); }
  void AddPainted(std::string text) { lines_.push_back("  " + std::move(text)); }
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  const int width_;
  const Style& style_;
  std::vector<std::string> lines_;
};

void AddPhases(const RankView& rank, int width, const Style& style, Lines* lines) {
  lines->Heading("STEP");
  lines->Add(fmt::format("{} on average{}, {} of its own{}{} steps/s{}", FormatDuration(rank.step_ns),
                         rank.is_since_start ? " since it began" : "", FormatDuration(rank.own_ns), style.Dot(),
                         RateText(rank.steps_per_s),
                         rank.mfu_ratio ? std::string(style.Dot()) + "MFU " + FormatPercent(rank.mfu_ratio) : ""));
  if (!rank.compute_ratio) return;
  const int bar_width = std::clamp(width - 40, 8, kMostBarWidth);
  for (size_t i = 0; i < model::kStages.size(); ++i) {
    const model::Stage phase = model::kStages[i];
    const std::optional<double>& ratio = rank.phase_ratio[i];
    std::optional<int64_t> ns;
    if (ratio && rank.step_ns) ns = static_cast<int64_t>(*ratio * static_cast<double>(*rank.step_ns));
    lines->AddPainted(fmt::format("{:<12} {:>8}  {:>6}  {}", model::StageName(phase), FormatDuration(ns),
                                  FormatPercent(ratio),
                                  report::PlainBar(PaintOfPhase(phase), ratio.value_or(0), 1, bar_width, style)));
  }
}

void AddCollectives(const RankView& rank, Lines* lines) {
  if (rank.reading.groups.empty() && !rank.reading.collective_calls) return;
  lines->Heading("COLLECTIVES");
  lines->Add(fmt::format("{} have ended; bus bandwidth while they run {}", Count(rank.reading.collective_calls),
                         report::FormatRate(rank.bus_bytes_per_s)));
  size_t shown = 0;
  for (const auto& [name, group] : rank.reading.groups) {
    if (++shown > kMostValues) break;
    std::optional<int64_t> open_ns;
    if (group.oldest_inflight_s.value_or(1e10) < 9e9) {
      open_ns = static_cast<int64_t>(std::max(*group.oldest_inflight_s, 0.0) * 1e9);
    }
    lines->Add(fmt::format("group {}: {} put into streams, {} ended, oldest open for {}", OrDash(name),
                           Count(group.enqueued), Count(group.completed), FormatDuration(open_ns)));
  }
}

void AddDevice(const RankView& rank, const Style& style, Lines* lines) {
  lines->Heading("DEVICE AND MEMORY");
  lines->Add(fmt::format("PyTorch: {} given out, {} held, {} at most; {} retries, {} out of memory",
                         FormatBytes(WholeFigure(rank.reading.torch_allocated_bytes)),
                         FormatBytes(WholeFigure(rank.reading.torch_reserved_bytes)),
                         FormatBytes(WholeFigure(rank.reading.torch_peak_bytes)),
                         Count(rank.reading.torch_alloc_retries), Count(rank.reading.torch_ooms)));
  if (!rank.gpu) {
    lines->Add("no device of it is measured");
    return;
  }
  const live::GpuReading& gpu = rank.gpu->reading;
  lines->Add(fmt::format("gpu {} ({}, {})", OrDash(gpu.gpu), OrDash(gpu.model), OrDash(gpu.uuid)));
  const auto number = [](const std::optional<double>& value, const char* unit) {
    return value ? fmt::format("{:.0f} {}", *value, unit) : std::string("-");
  };
  lines->Add(fmt::format(
      "busy {}{dot}memory {} of {}{dot}{}{dot}{} of {}{dot}{} Xid errors", FormatPercent(gpu.utilization_ratio),
      FormatBytes(WholeFigure(gpu.memory_used_bytes)), FormatBytes(WholeFigure(gpu.memory_total_bytes)),
      number(gpu.temperature_celsius, style.unicode ? "°C" : "C"), number(rank.gpu->power_watts, "W"),
      number(gpu.power_limit_watts, "W"), Count(gpu.xid_events), fmt::arg("dot", style.Dot())));
  for (const auto& [gi, instance] : gpu.mig_instances) {
    lines->Add(fmt::format("MIG instance {} ({}, {}): multiprocessors busy {}{}memory {} of {}", OrDash(gi),
                           OrDash(instance.profile), OrDash(instance.uuid), FormatPercent(instance.sm_active_ratio),
                           style.Dot(), FormatBytes(WholeFigure(instance.memory_used_bytes)),
                           FormatBytes(WholeFigure(instance.memory_total_bytes))));
  }
}

void AddServing(const live::JobView& job, const RankView& rank, Lines* lines) {
  bool has_heading = false;
  for (const live::ServingView& serving : job.serving) {
    if (serving.host != rank.host) continue;
    if (!has_heading) lines->Heading("REQUESTS of this rank's node, within the last minute");
    has_heading = true;
    for (const auto& [what, quantiles] : {std::pair("took", &serving.reading.recent_duration_s),
                                          {"first output", &serving.reading.recent_first_token_s},
                                          {"between", &serving.reading.recent_inter_token_s}}) {
      const live::Quantiles& known = *quantiles;  // A lambda of C++20 as clang 14 has it takes no binding.
      const auto quantile = [&](double share) { return QuantileText(serving.reading, known, share); };
      lines->Add(fmt::format("{:<16} {:<13} P50 {:>8}  P90 {:>8}  P95 {:>8}  P99 {:>8}", OrDash(serving.reading.model),
                             what, quantile(0.5), quantile(0.9), quantile(0.95), quantile(0.99)));
    }
  }
}

}  // namespace

std::vector<std::string> RankLines(const live::JobView& job, const RankView& rank, int width, const Style& style) {
  Lines lines(width, style);
  lines.Heading(fmt::format("RANK {} of job {}", Printable(rank.rank), Printable(job.job_id)));
  lines.Add(fmt::format("host {}{dot}pid {}{dot}local rank {}{dot}user {}{dot}device {}", OrDash(rank.host),
                        OrDash(rank.pid), OrDash(rank.local_rank), OrDash(rank.user), OrDash(rank.device),
                        fmt::arg("dot", style.Dot())));
  lines.AddPainted(fmt::format("{}{dot}waits for {}{dot}step {}{dot}{} behind{dot}last ended {} ago",
                               style(PaintOf(rank.state), live::RankStateName(rank.state)),
                               rank.waits_for_rank ? "rank " + Printable(*rank.waits_for_rank) : std::string("nobody"),
                               rank.step_count ? report::FormatCount(*rank.step_count) : std::string("-"),
                               rank.behind_steps ? report::FormatCount(*rank.behind_steps) : std::string("-"),
                               FormatDuration(rank.progress_age_ns), fmt::arg("dot", style.Dot())));
  if (const std::string words = PhaseWords(rank); !words.empty()) {
    lines.Add(fmt::format("{} for {}", words, FormatDuration(rank.open_phase_ns)));
  }
  AddPhases(rank, width, style, &lines);
  const std::string pace = Sparkline(rank.step_history, std::clamp(width - 32, 8, 100), style);
  if (!pace.empty()) {
    const auto [least, most] = std::minmax_element(rank.step_history.begin(), rank.step_history.end());
    lines.Add(fmt::format("pace         {}  {} to {}", pace, FormatDuration(*least), FormatDuration(*most)));
  }
  if (rank.samples_per_s || rank.tokens_per_s) {
    lines.Add(fmt::format("{} samples/s{}{} tokens/s", RateText(rank.samples_per_s), style.Dot(),
                          RateText(rank.tokens_per_s)));
  }
  lines.Heading("PROCESS");
  lines.Add(fmt::format("{} cores busy{dot}{} resident{dot}{} threads{dot}storage: reads {}, writes {}",
                        rank.cpu_cores ? fmt::format("{:.2f}", *rank.cpu_cores) : std::string("-"),
                        FormatBytes(WholeFigure(rank.reading.resident_bytes)), Count(rank.reading.threads),
                        report::FormatRate(rank.io_read_per_s), report::FormatRate(rank.io_written_per_s),
                        fmt::arg("dot", style.Dot())));
  AddDevice(rank, style, &lines);
  AddCollectives(rank, &lines);
  AddServing(job, rank, &lines);
  if (!rank.reading.user_values.empty()) lines.Heading("VALUES");
  size_t shown = 0;
  for (const auto& [name, value] : rank.reading.user_values) {
    if (++shown > kMostValues) break;
    lines.Add(fmt::format("{:<30} {:.6g}", OrDash(name), value));
  }
  if (rank.reading.log_errors) {
    lines.Heading("LOG");
    lines.Add(fmt::format("{} errors, {} a second", Count(rank.reading.log_errors), RateText(rank.log_errors_per_s)));
  }
  lines.Heading("RECORDS");
  lines.Add(fmt::format("{} read, {} dropped", Count(rank.reading.events), Count(rank.reading.dropped_events)));
  return lines.Take();
}

}  // namespace lockstep::top
