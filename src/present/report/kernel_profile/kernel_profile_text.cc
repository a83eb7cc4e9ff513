#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "analysis/kernel_profile/kernel_bounds.h"
#include "present/report/format.h"
#include "present/report/kernel_profile/kernel_profile_report.h"
#include "present/report/section_writer.h"
#include "present/report/style.h"
#include "present/report/text_table.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using analysis::KernelBound;
using model::KernelLaunch;
using model::KernelProfiles;

constexpr size_t kFewRows = 15;
constexpr size_t kFewRules = 5;

std::string RankText(std::optional<int32_t> rank) { return rank ? std::to_string(*rank) : "-"; }

Paint PaintOf(KernelBound bound) {
  return bound == KernelBound::kLatency ? Paint::kWarn : bound == KernelBound::kUnknown ? Paint::kFaint : Paint::kPlain;
}

class TextReport : private SectionWriter {
 public:
  TextReport(const KernelProfiles& profiles, const KernelTextOptions& options, std::ostream& out)
      : SectionWriter(out, {.colour = options.colour, .unicode = options.unicode}, options.columns, options.all),
        profiles_(profiles),
        options_(options),
        by_time_(profiles.launches.size()) {
    std::iota(by_time_.begin(), by_time_.end(), size_t{0});
    std::stable_sort(by_time_.begin(), by_time_.end(), [&](size_t a, size_t b) {
      return profiles.launches[a].duration_ns.value_or(0) > profiles.launches[b].duration_ns.value_or(0);
    });
  }

  void Write() {
    Headline();
    Launches();
    Roofline();
    Rules();
    for (const auto& [kind, title] : {std::pair(model::SummedKind::kKernel, "Kernels over ranks"),
                                      std::pair(model::SummedKind::kRange, "NVTX ranges over ranks"),
                                      std::pair(model::SummedKind::kApi, "Calls over ranks"),
                                      std::pair(model::SummedKind::kMemory, "Memory operations over ranks")}) {
      Sums(kind, title);
    }
    Ledger(profiles_.ledger);
    out_.flush();
  }

 private:
  void Headline() {
    std::array<size_t, 5> bounds{};
    int64_t total_ns = 0;
    for (const KernelLaunch& launch : profiles_.launches) {
      ++bounds[static_cast<size_t>(analysis::BoundOf(launch))];
      total_ns += launch.duration_ns.value_or(0);
    }
    if (profiles_.launches.empty()) {
      Paragraph("No launches of Nsight Compute; sums of nsys stats", Paint::kStrong);
      return;
    }
    std::string text = fmt::format("{} launch{} measured by Nsight Compute, {} in all", profiles_.launches.size(),
                                   profiles_.launches.size() == 1 ? "" : "es", FormatDuration(total_ns));
    std::string kinds;
    for (const KernelBound bound : {KernelBound::kCompute, KernelBound::kMemory, KernelBound::kBalanced,
                                    KernelBound::kLatency, KernelBound::kUnknown}) {
      if (const size_t count = bounds[static_cast<size_t>(bound)]; count > 0) {
        kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, analysis::KernelBoundName(bound));
      }
    }
    Paragraph(text + "; bound by: " + kinds, Paint::kStrong);
    Paragraph("Times are at ncu's clocks and with cold caches: compare launches with each other, not with the job.",
              Paint::kFaint);
  }

  void Launches() {
    if (profiles_.launches.empty()) return;
    Section("Launches");
    TextTable table({{.header = "kernel", .align = Align::kLeft, .flexible = true, .shorten = Shorten::kName},
                     {.header = "rank", .drop = 2},
                     {.header = "time"},
                     {.header = "compute"},
                     {.header = "memory"},
                     {.header = "occupancy", .drop = 3},
                     {.header = "bound by", .align = Align::kLeft},
                     {.header = "grid", .align = Align::kLeft, .drop = 4},
                     {.header = "block", .align = Align::kLeft, .drop = 5}});
    const size_t shown = Rows(by_time_.size(), kFewRows);
    for (size_t i = 0; i < shown; ++i) {
      const KernelLaunch& launch = profiles_.launches[by_time_[i]];
      const KernelBound bound = analysis::BoundOf(launch);
      table.AddRow({Printable(launch.kernel), RankText(launch.rank), FormatDuration(launch.duration_ns),
                    FormatPercent(launch.compute_ratio), FormatPercent(launch.memory_ratio),
                    FormatPercent(launch.occupancy_ratio), TableCell(analysis::KernelBoundName(bound), PaintOf(bound)),
                    Printable(launch.grid), Printable(launch.block)});
    }
    table.Write(style_, options_.columns, out_);
    More(by_time_.size(), shown, "launches");
  }

  void Roofline() {
    TextTable table({{.header = "kernel", .align = Align::kLeft, .flexible = true, .shorten = Shorten::kName},
                     {.header = "arithmetic", .align = Align::kLeft},
                     {.header = "FLOP/B"},
                     {.header = "ridge", .drop = 2},
                     {.header = "achieved"},
                     {.header = "roof"},
                     {.header = "of roof"}});
    size_t lacking = 0, rows = 0, shown = 0;
    for (const size_t i : by_time_) {
      const KernelLaunch& launch = profiles_.launches[i];
      const std::vector<analysis::RooflinePoint> points = analysis::RooflineOf(launch);
      if (points.empty()) ++lacking;
      for (const analysis::RooflinePoint& point : points) {
        ++rows;
        if (shown == Rows(rows, kFewRows)) continue;
        ++shown;
        table.AddRow({Printable(launch.kernel),
                      std::string(analysis::PrecisionName(point.precision)) + (point.approximate ? " (about)" : ""),
                      FormatNumber(point.flops_per_byte), FormatNumber(point.ridge_flops_per_byte),
                      FormatFlopRate(point.flops_per_s), FormatFlopRate(point.roof_flops_per_s),
                      FormatPercent(point.roof_ratio)});
      }
    }
    if (profiles_.launches.empty()) return;
    if (!table.empty()) {
      Section("Roofline");
      table.Write(style_, options_.columns, out_);
      More(rows, shown, "points");
    }
    if (lacking == 0) return;
    out_ << '\n';
    Paragraph(fmt::format("{} of {} launches have no place under a roofline: metrics are missing, or no arithmetic was "
                          "counted. ncu --set roofline collects what is needed.",
                          lacking, profiles_.launches.size()),
              Paint::kFaint);
  }

  void Rules() {
    struct Advice {
      const KernelLaunch* launch;
      const model::KernelRule* rule;
    };
    std::vector<Advice> advice;
    for (const size_t i : by_time_) {
      for (const model::KernelRule& rule : profiles_.launches[i].rules) {
        if (options_.all || rule.speedup_ratio.value_or(0) > 0) advice.push_back({&profiles_.launches[i], &rule});
      }
    }
    if (advice.empty()) return;
    std::stable_sort(advice.begin(), advice.end(), [](const Advice& a, const Advice& b) {
      const auto gain = [](const Advice& of) {
        return of.rule->speedup_is_local ? -1 : of.rule->speedup_ratio.value_or(-1);
      };
      return gain(a) > gain(b);
    });
    Section("What Nsight Compute advises");
    const size_t shown = Rows(advice.size(), kFewRules);
    for (size_t i = 0; i < shown; ++i) {
      const auto& [launch, rule] = advice[i];
      std::string text = Printable(launch->kernel.substr(0, 60)) + ": " + Printable(rule->text);
      if (rule->speedup_ratio) {
        text += fmt::format(" (ncu's estimate: {} {})", FormatPercent(*rule->speedup_ratio),
                            rule->speedup_is_local ? "of that part" : "of the launch");
      }
      WriteWrapped(text, fmt::format("  {} ", style_.Bullet()), "    ", options_.columns, out_);
    }
    More(advice.size(), shown, "rules");
  }

  void Sums(model::SummedKind kind, const char* title) {
    if (sums_.empty()) sums_ = analysis::SumOverRanks(profiles_);
    TextTable table({{.header = "name", .align = Align::kLeft, .flexible = true, .shorten = Shorten::kName},
                     {.header = "total"},
                     {.header = "count"},
                     {.header = "shortest", .drop = 3},
                     {.header = "longest", .drop = 2},
                     {.header = "reports", .drop = 4},
                     {.header = "most/mean"},
                     {.header = "most on rank"}});
    size_t rows = 0, shown = 0;
    for (const analysis::NameOverRanks& sum : sums_) {
      if (sum.kind != kind) continue;
      ++rows;
      if (shown == Rows(rows, kFewRows)) continue;
      ++shown;
      table.AddRow({Printable(sum.name), FormatDuration(sum.total_ns), FormatCount(sum.count),
                    FormatDuration(sum.min_ns), FormatDuration(sum.max_ns), std::to_string(sum.report_count),
                    sum.imbalance ? FormatNumber(*sum.imbalance) : "-", RankText(sum.most_rank)});
    }
    if (table.empty()) return;
    Section(title);
    table.Write(style_, options_.columns, out_);
    More(rows, shown, "names");
  }

  const KernelProfiles& profiles_;
  const KernelTextOptions options_;
  std::vector<size_t> by_time_;  // launches, the longest first
  std::vector<analysis::NameOverRanks> sums_;
};

}  // namespace

std::string FormatFlopRate(double flops_per_s) {
  if (flops_per_s == 0) return "0";
  static constexpr std::array<std::pair<double, const char*>, 4> kUnits = {
      {{1e12, "TFLOP/s"}, {1e9, "GFLOP/s"}, {1e6, "MFLOP/s"}, {1, "FLOP/s"}}};
  for (const auto& [unit, name] : kUnits) {
    if (flops_per_s >= unit || unit == 1) return fmt::format("{} {}", FormatNumber(flops_per_s / unit), name);
  }
  return "";
}

void WriteKernelText(const KernelProfiles& profiles, const KernelTextOptions& options, std::ostream& out) {
  TextReport(profiles, options, out).Write();
}

}  // namespace lockstep::report
