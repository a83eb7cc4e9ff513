// Sections of the passes that know how the job is divided: groups, flops.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/parallelism/flops.h"
#include "analysis/parallelism/process_groups.h"
#include "present/report/format.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using analysis::ProcessGroupRow;

// Groups of one window, kind, description and size: what a person thinks of as one.
struct GroupLine {
  const ProcessGroupRow* first = nullptr;
  uint64_t count = 0;
  uint64_t call_count = 0;
  std::optional<double> calls_per_step;
  std::optional<int64_t> bytes;
  int64_t communication_ns = 0;
  int64_t exposed_ns = 0;
  double span_ns = 0;  // of the ranks, from a row's ratio
};

std::string Label(const ProcessGroupRow& row) {
  if (!row.description.empty() && row.description != "undefined") return row.description;
  return row.name;
}

std::vector<GroupLine> GroupLines(const TextPage& page) {
  using Key = std::tuple<int32_t, analysis::GroupKind, std::string, size_t>;
  std::map<Key, GroupLine> lines;
  std::vector<Key> order;
  for (const ProcessGroupRow& row : page.result.Get<analysis::ProcessGroups>().rows) {
    const bool shown = std::any_of(row.rank_indices.begin(), row.rank_indices.end(),
                                   [&](size_t rank_index) { return page.Shows(rank_index); });
    if (!shown) continue;
    const Key key{row.window, row.kind, Label(row), row.members.size()};
    GroupLine& line = lines[key];
    if (line.first == nullptr) {
      line.first = &row;
      order.push_back(key);
    }
    ++line.count;
    line.call_count += row.call_count;
    if (row.calls_per_step) line.calls_per_step = std::max(line.calls_per_step.value_or(0), *row.calls_per_step);
    if (row.bytes) line.bytes = line.bytes.value_or(0) + *row.bytes;
    line.communication_ns += row.communication_ns;
    line.exposed_ns += row.exposed_ns;
    if (row.communication_ratio && *row.communication_ratio > 0) {
      line.span_ns += static_cast<double>(row.communication_ns) / *row.communication_ratio;
    }
  }
  std::vector<GroupLine> ordered;
  for (const Key& key : order) ordered.push_back(lines[key]);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const GroupLine& a, const GroupLine& b) { return a.exposed_ns > b.exposed_ns; });
  return ordered;
}

std::optional<double> Share(int64_t part_ns, double span_ns) {
  if (span_ns <= 0) return std::nullopt;
  return static_cast<double>(part_ns) / span_ns;
}

}  // namespace

void WriteGroupsSection(const TextPage& page) {
  page.Heading("GROUPS", "process groups with traffic; exposed: nothing is computed beside it");
  const std::vector<GroupLine> lines = GroupLines(page);
  if (lines.empty()) {
    page.Paragraph("No collectives in the files.");
    return;
  }
  TextTable table({{"kind", Align::kLeft},
                   {"sure", Align::kLeft, false, 3},
                   {"groups"},
                   {"ranks"},
                   {"name", Align::kLeft, true},
                   {"calls/step", Align::kRight, false, 2},
                   {"bytes", Align::kRight, false, 1},
                   {"of span"},
                   {"exposed"}});
  for (size_t i = 0; i < lines.size() && i < page.options.top; ++i) {
    const GroupLine& line = lines[i];
    const ProcessGroupRow& row = *line.first;
    table.AddRow({analysis::GroupKindName(row.kind), analysis::ConfidenceName(row.confidence), FormatCount(line.count),
                  FormatCount(row.members.size()), Printable(Label(row)),
                  line.calls_per_step ? FormatNumber(*line.calls_per_step) : "-", FormatBytes(line.bytes),
                  FormatPercent(Share(line.communication_ns, line.span_ns)),
                  FormatPercent(Share(line.exposed_ns, line.span_ns))});
  }
  page.Write(table, lines.size());
  const size_t shown = std::min<size_t>(lines.size(), 6);
  for (size_t i = 0; i < shown; ++i) {
    const ProcessGroupRow& row = *lines[i].first;
    page.Paragraph(fmt::format("{} ({}): {}.", analysis::GroupKindName(row.kind), RankList(row.members, 6),
                               Printable(row.evidence)),
                   Paint::kFaint);
  }
}

void WriteFlopsSection(const TextPage& page) {
  page.Heading("FLOPS", "matrix operators whose shapes were recorded; peaks are dense");
  const analysis::Flops& flops = page.result.Get<analysis::Flops>();
  TextTable ranks({{"rank"},
                   {"device", Align::kLeft, true},
                   {"type", Align::kLeft},
                   {"TFLOP", Align::kRight, false, 2},
                   {"span", Align::kRight, false, 1},
                   {"TFLOP/s"},
                   {"peak"},
                   {"MFU"}});
  size_t rank_count = 0;
  constexpr double kTera = 1e12;
  const auto tera = [](std::optional<double> value) { return value ? FormatNumber(*value / kTera) : std::string("-"); };
  for (const analysis::FlopsRankRow& row : flops.ranks) {
    if (!page.Shows(row.rank_index)) continue;
    if (++rank_count > page.options.top) continue;
    ranks.AddRow({page.RankLabel(row.rank_index), row.device.empty() ? "-" : Printable(row.device),
                  analysis::PrecisionName(row.precision), FormatNumber(static_cast<double>(row.flops) / kTera),
                  FormatDuration(row.span_ns), tera(row.flops_per_s), tera(row.peak_flops_per_s),
                  FormatPercent(row.mfu)});
  }
  if (rank_count == 0) {
    page.Paragraph("No shapes in the files: record with record_shapes=True.");
    return;
  }
  page.Write(ranks, rank_count);
  std::vector<const analysis::FlopsRow*> rows;
  for (const analysis::FlopsRow& row : flops.operators) {
    if (page.Shows(row.rank_index)) rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->time_ns > b->time_ns; });
  if (rows.empty()) return;
  page.Heading("ROOFLINE", "by operator and shapes, longest first; roof: lesser of peak and bandwidth x intensity");
  TextTable table({{"rank", Align::kRight, false, 4},
                   {"operator", Align::kLeft},
                   {"shapes", Align::kLeft, true},
                   {"type", Align::kLeft, false, 3},
                   {"calls", Align::kRight, false, 2},
                   {"time"},
                   {"FLOP/B", Align::kRight, false, 1},
                   {"TFLOP/s"},
                   {"bound", Align::kLeft},
                   {"of roof"}});
  for (size_t i = 0; i < rows.size() && i < page.options.top; ++i) {
    const analysis::FlopsRow* row = rows[i];
    const char* bound = !row->compute_bound ? "-" : (*row->compute_bound ? "compute" : "memory");
    table.AddRow({page.RankLabel(row->rank_index), Printable(row->name), Printable(row->dims),
                  analysis::PrecisionName(row->precision), FormatCount(row->call_count), FormatDuration(row->time_ns),
                  FormatNumber(row->intensity), tera(row->mean_flops_per_s), bound, FormatPercent(row->roof_ratio)});
  }
  page.Write(table, rows.size());
}

}  // namespace lockstep::report
