// Sections with a line for each name, summed over ranks: kernels and operators.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "analysis/kernels.h"
#include "analysis/operators.h"
#include "present/report/format.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

struct KernelLine {
  std::string_view name;
  analysis::KernelKind kind = analysis::KernelKind::kCompute;
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t min_ns = INT64_MAX;
  int64_t max_ns = 0;
  size_t max_rank = 0;
};

struct OperatorLine {
  std::string_view name;
  uint64_t count = 0;
  int64_t cpu_self_ns = 0;
  int64_t cpu_total_ns = 0;
  int64_t device_self_ns = 0;
  int64_t device_total_ns = 0;
};

const char* ShortKind(analysis::KernelKind kind) {
  switch (kind) {
    case analysis::KernelKind::kCompute: return "comp";
    case analysis::KernelKind::kCommunication: return "comm";
    case analysis::KernelKind::kMemcpy: return "copy";
    case analysis::KernelKind::kMemset: return "set";
  }
  return "";
}

std::string RanksNote(const TextPage& page, std::string_view what) {
  if (page.options.rank) return fmt::format("rank {}; {}", *page.options.rank, what);
  return page.run.ranks.size() == 1 ? std::string(what)
                                    : fmt::format("sum over {}; {}", Plural(page.run.ranks.size(), "rank"), what);
}

}  // namespace

void WriteKernelsSection(const TextPage& page) {
  page.Heading("KERNELS", RanksNote(page, "sum of durations, largest first"));
  std::map<NameId, KernelLine> by_name;
  int64_t whole = 0;
  for (const analysis::KernelRow& row : page.result.Get<analysis::Kernels>().rows) {
    if (!page.Shows(row.rank_index)) continue;
    KernelLine& line = by_name[row.name];
    line.name = page.run.names[row.name];
    line.kind = row.kind;
    line.count += row.count;
    line.total_ns += row.total_ns;
    whole += row.total_ns;
    line.min_ns = std::min(line.min_ns, row.min_ns);
    if (row.max_ns > line.max_ns || line.count == row.count) {
      line.max_ns = row.max_ns;
      line.max_rank = row.rank_index;
    }
  }
  if (by_name.empty()) {
    page.Paragraph("No device events in the files.");
    return;
  }
  std::vector<KernelLine> lines;
  for (const auto& [id, line] : by_name) lines.push_back(line);
  std::sort(lines.begin(), lines.end(), [](const KernelLine& a, const KernelLine& b) {
    return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.name < b.name;
  });
  const bool several = page.run.ranks.size() > 1 && !page.options.rank;
  std::vector<TableColumn> columns = {{"total"}, {"share"}, {"count"}, {"mean"}, {"min", Align::kRight, false, 4},
                                      {"max"}};
  if (several) columns.push_back({"on rank", Align::kRight, false, 3});
  columns.push_back({"kind", Align::kLeft, false, 2});
  columns.push_back({"name", Align::kLeft, true, 0, Shorten::kName, 36});
  TextTable table(std::move(columns));
  for (size_t i = 0; i < lines.size() && i < page.options.top; ++i) {
    const KernelLine& line = lines[i];
    const auto mean = line.count == 0 ? 0 : line.total_ns / static_cast<int64_t>(line.count);
    std::vector<TableCell> cells = {
        FormatDuration(line.total_ns),
        FormatPercent(whole > 0 ? static_cast<double>(line.total_ns) / static_cast<double>(whole) : 0),
        FormatCount(line.count),
        FormatDuration(mean),
        FormatDuration(line.min_ns),
        FormatDuration(line.max_ns)};
    if (several) cells.emplace_back(page.RankLabel(line.max_rank));
    cells.emplace_back(ShortKind(line.kind),
                       line.kind == analysis::KernelKind::kCommunication ? Paint::kCommunication : Paint::kPlain);
    cells.emplace_back(Printable(line.name));
    table.AddRow(std::move(cells));
  }
  page.Write(table, lines.size());
}

void WriteOperatorsSection(const TextPage& page) {
  std::map<NameId, OperatorLine> by_name;
  for (const analysis::OperatorRow& row : page.result.Get<analysis::Operators>().rows) {
    if (!page.Shows(row.rank_index)) continue;
    OperatorLine& line = by_name[row.name];
    line.name = page.run.names[row.name];
    line.count += row.count;
    line.cpu_self_ns += row.cpu_self_ns;
    line.cpu_total_ns += row.cpu_total_ns;
    line.device_self_ns += row.device_self_ns;
    line.device_total_ns += row.device_total_ns;
  }
  const bool device =
      std::any_of(by_name.begin(), by_name.end(), [](const auto& entry) { return entry.second.device_self_ns > 0; });
  page.Heading("OPERATORS", RanksNote(page, device ? "largest device self time first" : "largest CPU self time first"));
  if (by_name.empty()) {
    page.Paragraph("No operators in the files.");
    return;
  }
  std::vector<OperatorLine> lines;
  for (const auto& [id, line] : by_name) lines.push_back(line);
  std::sort(lines.begin(), lines.end(), [](const OperatorLine& a, const OperatorLine& b) {
    if (a.device_self_ns != b.device_self_ns) return a.device_self_ns > b.device_self_ns;
    if (a.cpu_self_ns != b.cpu_self_ns) return a.cpu_self_ns > b.cpu_self_ns;
    return a.name < b.name;
  });
  std::vector<TableColumn> columns;
  if (device) columns = {{"device self"}, {"device total", Align::kRight, false, 1}};
  columns.push_back({"CPU self"});
  columns.push_back({"CPU total"});
  columns.push_back({"count"});
  columns.push_back({"name", Align::kLeft, true, 0, Shorten::kName, 36});
  TextTable table(std::move(columns));
  for (size_t i = 0; i < lines.size() && i < page.options.top; ++i) {
    const OperatorLine& line = lines[i];
    std::vector<TableCell> cells;
    if (device) {
      cells.emplace_back(FormatDuration(line.device_self_ns));
      cells.emplace_back(FormatDuration(line.device_total_ns));
    }
    cells.emplace_back(FormatDuration(line.cpu_self_ns));
    cells.emplace_back(FormatDuration(line.cpu_total_ns));
    cells.emplace_back(FormatCount(line.count));
    cells.emplace_back(Printable(line.name));
    table.AddRow(std::move(cells));
  }
  page.Write(table, lines.size());
}

}  // namespace lockstep::report
