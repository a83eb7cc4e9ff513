#include "present/report/delta_text.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "present/report/format.h"
#include "present/report/utf8.h"

namespace lockstep::report {

using comparison::Change;
using comparison::Delta;

std::string SignedTime(double ns) { return (ns > 0 ? "+" : "") + FormatMeanDuration(ns); }

std::string SignedPercent(std::optional<double> ratio) {
  if (!ratio) return "-";
  const double percent = *ratio * 100;
  return std::abs(percent) >= 99.5 ? fmt::format("{:+.0f} %", percent) : fmt::format("{:+.1f} %", percent);
}

Paint PaintOf(Change change) {
  return change == Change::kSlower ? Paint::kBad : change == Change::kFaster ? Paint::kGood : Paint::kPlain;
}

std::string Interval(const Delta& delta) {
  if (!delta.shift || !delta.shift->low) return "-";
  return fmt::format("{} .. {}", SignedTime(*delta.shift->low), SignedTime(*delta.shift->high));
}

std::string Level(double confidence) { return fmt::format("{:g} % interval", confidence * 100); }

std::string Word(Change change, const Delta& delta) {
  if (change == Change::kUnknown) return "?";
  if (change != Change::kNone) return ChangeName(change);
  return delta.shift && delta.shift->differs() ? "small" : "same";
}

void AddDelta(TextTable* table, std::string label, const Delta& delta) {
  table->AddRow({{std::move(label)},
                 {FormatMeanDuration(delta.a)},
                 {FormatMeanDuration(delta.b)},
                 {delta.shift ? SignedTime(delta.shift->estimate) : "-", PaintOf(delta.change)},
                 {SignedPercent(delta.ratio())},
                 {Interval(delta)},
                 {Word(delta.change, delta), PaintOf(delta.change)}});
}

TextTable DeltaTable(double confidence) {
  return TextTable({{"", Align::kLeft},
                    {"A"},
                    {"B"},
                    {"change"},
                    {"of A"},
                    {Level(confidence), Align::kRight, false, 1},
                    {"", Align::kLeft}});
}

void WriteVerdict(const comparison::Verdict& verdict, int width, const Style& style, std::ostream& out) {
  const std::string first = std::string(style.Pointer()) + " ";
  WriteWrapped(Printable(verdict.sentence), first, "  ", width, out, Paint::kStrong, style);
  for (size_t i = 1; i < verdict.reasons.size(); ++i) {
    WriteWrapped("also: " + verdict.reasons[i].text, "  ", "    ", width, out, Paint::kPlain, style);
  }
  for (const std::string& note : verdict.notes) {
    WriteWrapped("note: " + Printable(note), "  ", "    ", width, out, Paint::kFaint, style);
  }
}

}  // namespace lockstep::report
