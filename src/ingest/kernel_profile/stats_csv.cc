#include "ingest/kernel_profile/stats_csv.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/text_scan.h"
#include "ingest/kernel_profile/csv_rows.h"
#include "ingest/kernel_profile/metric_units.h"

namespace lockstep::ingest {
namespace {

using model::SummedKind;

constexpr double kLongestSumNs = 9e18;

struct Columns {
  SummedKind kind = SummedKind::kKernel;
  std::optional<size_t> name;
  std::optional<size_t> count;
  std::optional<size_t> total;
  std::optional<size_t> least;
  std::optional<size_t> most;
  double ns = 1;  ///< Nanoseconds in the unit of times.
  bool complete() const { return name && count && total; }
};

/// "Total Time (ns)" -> "Total Time", and what "ns" is in nanoseconds.
std::string_view WithoutUnit(std::string_view title, std::string_view* unit) {
  const size_t open = title.rfind(" (");
  if (open == std::string_view::npos || title.back() != ')') return title;
  *unit = title.substr(open + 2, title.size() - open - 3);
  return title.substr(0, open);
}

Columns ColumnsOf(const std::vector<std::string>& header) {
  Columns columns;
  if (header.empty() || (header[0].substr(0, 6) != "Time (" && header[0].substr(0, 5) != "Time(")) return columns;
  bool by_launch = false;
  for (size_t c = 0; c < header.size(); ++c) {
    std::string_view unit;
    const std::string_view title = WithoutUnit(header[c], &unit);
    if (title == "Total Time") {
      columns.total = c;
      columns.ns = FactorOf(unit) * 1e9;
    } else if (title == "Instances" || title == "Num Calls" || title == "Count" || title == "Operations") {
      columns.count = c;
      if (title == "Num Calls") columns.kind = SummedKind::kApi;
    } else if (title == "Name" || title == "Operation" || title == "Range") {
      columns.name = c;
      if (title == "Range") columns.kind = SummedKind::kRange;
      if (title == "Operation") columns.kind = SummedKind::kMemory;
    } else if (title == "Min" || title == "Minimum") {
      columns.least = c;
    } else if (title == "Max" || title == "Maximum") {
      columns.most = c;
    } else if (title == "GridXYZ") {
      by_launch = true;
    }
  }
  // A kernel's grids, each a row: the sums by name are in the table without them.
  if (by_launch) columns.name.reset();
  return columns;
}

struct Table {
  std::string_view text;  ///< From the header on.
  char separator = ',';
  Columns columns;
};

/// Lines such as "Processing [...]" may stand before the header.
Table TableOf(std::string_view text) {
  constexpr uint64_t kLinesBefore = 200;
  for (LineScanner lines(text); true;) {
    const std::string_view rest = lines.rest();
    std::string_view line;
    if (!lines.Next(&line) || lines.number() > kLinesBefore) return {};
    if (line.substr(0, 4) != "Time" && line.substr(0, 5) != "\"Time") continue;
    for (const char separator : {',', '\t'}) {
      Columns columns;
      ForEachRow(line, separator, [&](std::vector<std::string>& cells) {
        columns = ColumnsOf(cells);
        return false;
      });
      if (columns.complete()) return {rest, separator, columns};
    }
  }
}

/// "job.0-of-4_nvtx_sum.csv.gz" -> "job.0-of-4": nsys names a table by the report and what it sums up.
std::string ReportOf(std::string_view file) {
  static constexpr std::array<std::string_view, 14> kTables = {"_cuda_gpu_kern_sum", "_cuda_gpu_mem_time_sum",
                                                               "_cuda_gpu_sum",      "_cuda_api_sum",
                                                               "_cuda_api_gpu_sum",  "_osrt_sum",
                                                               "_nvtx_pushpop_sum",  "_nvtx_startend_sum",
                                                               "_nvtx_sum",          "_mpi_event_sum",
                                                               "_gpukernsum",        "_cudaapisum",
                                                               "_gpumemtimesum",     "_nvtxsum"};
  const size_t slash = file.rfind('/');
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  for (const std::string_view table : kTables) {
    if (const size_t at = file.rfind(table); at != std::string_view::npos) return std::string(file.substr(0, at));
  }
  return std::string(file);
}

}  // namespace

bool LooksLikeStatsSum(std::string_view text) { return TableOf(text).columns.complete(); }

void ReadStatsSum(std::string_view text, std::string_view file, std::optional<int32_t> rank,
                  model::KernelProfiles* profiles) {
  const Table table = TableOf(text);
  const Columns& columns = table.columns;
  if (!columns.complete()) return;
  NumberStyle style;
  ForEachRow(table.text, table.separator, [&](std::vector<std::string>& cells) {
    if (columns.total < cells.size() && HasDecimalComma(cells[*columns.total])) style.decimal = ',';
    return style.decimal != ',';
  });
  const std::string report = ReportOf(file);
  uint64_t skipped = 0;
  bool is_header = true;
  const auto time = [&](const std::vector<std::string>& cells, std::optional<size_t> column) -> std::optional<int64_t> {
    if (!column || *column >= cells.size()) return std::nullopt;
    const std::optional<double> value = NumberOf(cells[*column], style);
    if (!value || *value < 0 || *value * columns.ns > kLongestSumNs) return std::nullopt;
    return std::llround(*value * columns.ns);
  };
  ForEachRow(table.text, table.separator, [&](std::vector<std::string>& cells) {
    if (is_header) {
      is_header = false;
      return true;
    }
    const std::optional<int64_t> total_ns = time(cells, columns.total);
    const std::optional<double> count =
        *columns.count < cells.size() ? NumberOf(cells[*columns.count], style) : std::nullopt;
    if (!total_ns || !count || *count < 0 || *count > 1e18 || *columns.name >= cells.size()) {
      ++skipped;
      return true;
    }
    profiles->sums.push_back({std::string(file), report, rank, columns.kind, cells[*columns.name],
                              static_cast<uint64_t>(*count), *total_ns, time(cells, columns.least).value_or(0),
                              time(cells, columns.most).value_or(0)});
    return true;
  });
  if (skipped == 0) return;
  profiles->ledger.Add({.code = "stats_rows_skipped",
                        .severity = model::Severity::kWarning,
                        .source = std::string(file),
                        .rank = rank,
                        .count = skipped,
                        .message = fmt::format("{} rows have no name, count or total time", skipped),
                        .advice = "the other rows were used"});
}

}  // namespace lockstep::ingest
