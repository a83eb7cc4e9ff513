#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "analysis/comparison/compare.h"
#include "model/stages/stage.h"
#include "present/report/delta_text.h"
#include "present/report/format.h"
#include "present/report/section_writer.h"
#include "present/report/stages/stage_comparison_report.h"
#include "present/report/text_page.h"
#include "present/report/text_table.h"
#include "present/report/utf8.h"

namespace lockstep::report {

using stage_comparison::Gate;
using stage_comparison::GateResult;
using stage_comparison::Side;
using stage_comparison::StageComparison;

namespace {

std::optional<double> RatioOf(double a, double b) {
  if (a <= 0) return std::nullopt;
  return b / a - 1;
}

Paint PaintOfGate(GateResult result) {
  return result == GateResult::kFailed ? Paint::kBad : result == GateResult::kPassed ? Paint::kGood : Paint::kWarn;
}

class StageComparisonText : private SectionWriter {
 public:
  StageComparisonText(const StageComparison& comparison, const TextOptions& options, std::ostream& out)
      : SectionWriter(out, {.colour = options.colour, .unicode = options.unicode}, options.width, true),
        comparison_(comparison),
        width_(options.width) {}

  void Write(const std::optional<Gate>& gate) {
    Head("A", comparison_.a);
    Head("B", comparison_.b);
    out_ << '\n';
    WriteVerdict(comparison_.verdict, width_, style_, out_);
    if (gate) {
      WriteWrapped("--fail-on " + gate->sentence, "  ", "    ", width_, out_, PaintOfGate(gate->result), style_);
    }
    Stages();
    WholeRuns();
    Section("What each run says of itself");
    WriteWrapped(Printable(comparison_.a.summary.verdict), "  A  ", "     ", width_, out_);
    WriteWrapped(Printable(comparison_.b.summary.verdict), "  B  ", "     ", width_, out_);
    out_.flush();
  }

 private:
  void Head(const char* name, const Side& side) {
    std::string workload;
    for (const auto& [key, value] : side.summary.facts.workload) workload += fmt::format(", {}={}", key, value);
    out_ << Truncate(Printable(fmt::format("{}  {}: {}, {}{}", name, side.summary.source,
                                           Plural(static_cast<uint64_t>(side.summary.world_size), "rank"),
                                           Plural(static_cast<uint64_t>(side.step_count), "step"), workload)),
                     width_, style_.Ellipsis())
         << '\n';
  }

  void Stages() {
    Section("Stages of a step (medians of windows of steps)");
    TextTable table = DeltaTable(comparison_.options.compare.confidence);
    AddDelta(&table, "step", comparison_.step);
    for (const model::Stage stage : model::kStages) {
      const comparison::Delta& delta = comparison_.stages[static_cast<size_t>(stage)];
      if (delta.a == 0 && delta.b == 0 && delta.change != comparison::Change::kSlower &&
          delta.change != comparison::Change::kFaster)
        continue;
      AddDelta(&table, StageName(stage), delta);
    }
    table.Write(style_, width_, out_);
  }

  void WholeRuns() {
    Section("Whole runs");
    TextTable table({{"", Align::kLeft}, {"A"}, {"B"}, {"of A"}});
    for (const WholeRunRow& row : WholeRunRows(comparison_)) table.AddRow({row.name, row.a, row.b, row.change});
    table.Write(style_, width_, out_);
  }

  const StageComparison& comparison_;
  const int width_;
};

}  // namespace

std::vector<WholeRunRow> WholeRunRows(const StageComparison& comparison) {
  const Side& a = comparison.a;
  const Side& b = comparison.b;
  std::vector<WholeRunRow> rows;
  const auto add_time = [&](const char* name, double a_ns, double b_ns) {
    rows.push_back({name, FormatMeanDuration(a_ns), FormatMeanDuration(b_ns), SignedPercent(RatioOf(a_ns, b_ns))});
  };
  const auto add_bytes = [&](const char* name, const std::optional<int64_t>& in_a, const std::optional<int64_t>& in_b) {
    if (!in_a && !in_b) return;
    rows.push_back(
        {name, FormatBytes(in_a), FormatBytes(in_b),
         SignedPercent(in_a && in_b ? RatioOf(static_cast<double>(*in_a), static_cast<double>(*in_b)) : std::nullopt)});
  };
  add_time("mean step", a.mean_step_ns, b.mean_step_ns);
  add_time("median step", a.median_step_ns, b.median_step_ns);
  add_bytes("process, the most of a rank", a.summary.resident_bytes, b.summary.resident_bytes);
  add_bytes("allocated by PyTorch", a.summary.allocated_bytes, b.summary.allocated_bytes);
  add_bytes("held by PyTorch", a.summary.reserved_bytes, b.summary.reserved_bytes);
  return rows;
}

void WriteStageComparisonText(const StageComparison& comparison, const std::optional<Gate>& gate,
                              const TextOptions& options, std::ostream& out) {
  StageComparisonText(comparison, options, out).Write(gate);
}

}  // namespace lockstep::report
