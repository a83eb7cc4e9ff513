#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "present/report/bars.h"
#include "present/report/format.h"
#include "present/report/scaling_report.h"
#include "present/report/style.h"
#include "present/report/text_table.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using comparison::Fitted;
using comparison::ScalingCurve;
using comparison::ScalingPoint;

std::string WithMargin(const Fitted& fitted) {
  return fitted.margin ? fmt::format("{} (+- {})", FormatMeanDuration(fitted.value), FormatMeanDuration(*fitted.margin))
                       : FormatMeanDuration(fitted.value) + " (margin unknown)";
}

void WriteRuns(const ScalingCurve& curve, const TextOptions& options, const Style& style, std::ostream& out) {
  const bool items = curve.options.items_per_step.has_value();
  TextTable table({{"ranks"},
                   {"step"},
                   {fmt::format("{:g} % interval", curve.options.confidence * 100), Align::kRight, false, 2},
                   {"exposed comm"},
                   {"of step"},
                   {"speed-up"},
                   {"efficiency"},
                   {items ? "items/s" : ""},
                   {"run", Align::kLeft, true, 1}});
  for (const ScalingPoint& p : curve.points) {
    const double efficiency = curve.efficiency(p);
    const Paint paint = efficiency < 0.5 ? Paint::kBad : efficiency < 0.8 ? Paint::kWarn : Paint::kPlain;
    table.AddRow(
        {{fmt::format("{}", p.ranks)},
         {FormatMeanDuration(p.step_ns)},
         {p.low_ns ? fmt::format("{} .. {}", FormatMeanDuration(*p.low_ns), FormatMeanDuration(*p.high_ns)) : "-"},
         {FormatMeanDuration(p.communication_ns)},
         {FormatPercent(p.communication_ratio)},
         {fmt::format("{:.2f}", p.speed_up)},
         {FormatPercent(efficiency), paint},
         {p.items_per_s ? FormatNumber(*p.items_per_s) : std::string()},
         {Printable(p.label)}});
  }
  table.Write(style, options.width, out);
}

/// Speed-up by run: the bar is what was reached, the mark where the ideal line lies.
void WriteCurve(const ScalingCurve& curve, const TextOptions& options, const Style& style, std::ostream& out) {
  const ScalingPoint& first = curve.points.front();
  const double whole = static_cast<double>(curve.points.back().ranks) / first.ranks;
  const int width = std::max(10, std::min(60, options.width - 24));
  out << '\n' << style(Paint::kStrong, "SPEED-UP") << "  " << style(Paint::kFaint, "bar: reached; | : ideal") << '\n';
  for (const ScalingPoint& p : curve.points) {
    const double ideal = static_cast<double>(p.ranks) / first.ranks;
    const int reached = static_cast<int>(std::lround(std::clamp(p.speed_up / whole, 0.0, 1.0) * width));
    const int mark = static_cast<int>(std::lround(ideal / whole * width));
    std::string line;
    for (int i = 1; i <= width; ++i) {
      if (i == mark) {
        line += "|";
      } else if (i <= reached) {
        line += BarGlyph(Paint::kCompute, style.unicode);
      } else if (i < mark) {
        line += style.unicode ? "·" : ".";
      }
    }
    out << fmt::format("  {:>6} {} {:.2f} of {:g}\n", p.ranks, line, p.speed_up, ideal);
  }
}

void WriteFit(const ScalingCurve& curve, const TextOptions& options, const Style& style, std::ostream& out) {
  const comparison::ScalingFit& fit = curve.fit;
  out << '\n' << style(Paint::kStrong, "FIT") << '\n';
  const auto say = [&](const std::string& text) {
    WriteWrapped(text, "  ", "    ", options.width, out, Paint::kPlain, style);
  };
  if (!fit.fitted) {
    say("cannot be fitted: " + fit.reason);
    return;
  }
  const bool strong = curve.options.kind == comparison::Scaling::kStrong;
  say(fmt::format("T(n) = {}{} + {} x {}", strong ? "serial + parallel / n" : "work of a rank", "", "communication",
                  GrowthName(fit.growth)));
  say(fmt::format("{} {}, {:.1f} % of the step at {} ranks", strong ? "serial work" : "work of a rank",
                  WithMargin(fit.serial), fit.serial_share * 100, curve.points.back().ranks));
  if (strong) say(fmt::format("parallel work {} at one rank", WithMargin(fit.parallel)));
  say(fmt::format("communication {} x {}, {:.1f} % of the step at {} ranks", WithMargin(fit.communication),
                  GrowthName(fit.growth), fit.communication_share * 100, curve.points.back().ranks));
  say(fit.reason);
  out << '\n' << style(Paint::kStrong, fmt::format("NEXT: {:g} RANKS", fit.next_ranks)) << '\n';
  say(fmt::format("step {} ({} to {}), {:.0f} % {} efficiency; bound by {}", FormatMeanDuration(fit.next_step_ns),
                  FormatMeanDuration(fit.next_low_ns), FormatMeanDuration(fit.next_high_ns), fit.next_efficiency * 100,
                  ScalingName(curve.options.kind), fit.bound));
}

}  // namespace

void WriteScalingText(const ScalingCurve& curve, const TextOptions& options, std::ostream& out) {
  const Style style{options.colour, options.unicode};
  WriteWrapped(Printable(curve.sentence), std::string(style.Pointer()) + " ", "  ", options.width, out, Paint::kStrong,
               style);
  for (const std::string& note : curve.notes) {
    WriteWrapped("note: " + Printable(note), "  ", "    ", options.width, out, Paint::kFaint, style);
  }
  out << '\n';
  WriteRuns(curve, options, style, out);
  WriteCurve(curve, options, style, out);
  WriteFit(curve, options, style, out);
  if (!curve.direct.empty()) {
    out << '\n'
        << style(Paint::kStrong, "WITHOUT SYNCHRONISATION") << "  "
        << style(Paint::kFaint, "what gradient synchronisation costs, measured") << '\n';
    TextTable table(
        {{"ranks"}, {"full"}, {"no sync"}, {"overhead"}, {"of step"}, {"interval", Align::kRight, false, 1}});
    for (const comparison::DirectOverhead& row : curve.direct) {
      table.AddRow(
          {{fmt::format("{}", row.ranks)},
           {FormatMeanDuration(row.full_ns)},
           {FormatMeanDuration(row.no_sync_ns)},
           {FormatMeanDuration(row.overhead_ns)},
           {fmt::format("{:.1f} %", row.ratio * 100)},
           {row.low_ns ? fmt::format("{} .. {}", FormatMeanDuration(*row.low_ns), FormatMeanDuration(*row.high_ns))
                       : "-"}});
    }
    table.Write(style, options.width, out);
  }
  out.flush();
}

}  // namespace lockstep::report
