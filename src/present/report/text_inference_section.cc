// Section of the pass "inference".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "analysis/parallelism/inference.h"
#include "present/report/format.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

std::string WholeNumber(std::optional<double> value) {
  return value ? FormatCount(static_cast<uint64_t>(std::llround(*value))) : "-";
}

void WriteRequests(const TextPage& page) {
  const auto& requests = page.result.Get<analysis::Inference>().requests;
  if (requests.empty()) return;
  page.out << '\n';
  // Ranges have no kind, and do not say what failed.
  const bool recorded =
      std::any_of(requests.begin(), requests.end(), [](const auto& row) { return row.recorded.has_value(); });
  std::vector<TableColumn> columns = {{"rank"}};
  if (recorded) columns.push_back({"kind", Align::kLeft});
  columns.push_back({"requests"});
  if (recorded) columns.push_back({"failed"});
  const std::vector<TableColumn> times = {{"latency", Align::kRight, false, 1},
                                          {"P95"},
                                          {"P99"},
                                          {"to first token", Align::kRight, false, 2},
                                          {"P95", Align::kRight, false, 2},
                                          {"P99", Align::kRight, false, 2}};
  columns.insert(columns.end(), times.begin(), times.end());
  TextTable table(std::move(columns));
  size_t row_count = 0;
  for (const analysis::InferenceRequestRow& row : requests) {
    if (!page.Shows(row.rank_index) || ++row_count > page.options.top) continue;
    const auto& first = row.first_token;
    const auto latency = [&row](int64_t quantile_ns) {
      return row.latency_count > 0 ? FormatDuration(quantile_ns) : "-";
    };
    std::vector<TableCell> cells = {page.RankLabel(row.rank_index)};
    if (recorded) cells.emplace_back(row.recorded ? Printable(page.run.names[row.recorded->kind]) : "-");
    cells.emplace_back(FormatCount(row.request_count));
    if (recorded) cells.emplace_back(row.recorded ? FormatCount(row.recorded->failed_count) : "-");
    for (const int64_t quantile_ns : {row.latency.median_ns, row.latency.p95_ns, row.latency.p99_ns}) {
      cells.emplace_back(latency(quantile_ns));
    }
    for (const auto quantile : {&analysis::DurationQuantiles::median_ns, &analysis::DurationQuantiles::p95_ns,
                                &analysis::DurationQuantiles::p99_ns}) {
      cells.emplace_back(first ? FormatDuration((*first).*quantile) : "-");
    }
    table.AddRow(std::move(cells));
  }
  page.Write(table, row_count);
}

}  // namespace

void WriteInferenceSection(const TextPage& page) {
  page.Heading("INFERENCE", "marked phases, each until the device work launched in it is done; medians and tails");
  TextTable table({{"rank"},
                   {"phase", Align::kLeft},
                   {"count"},
                   {"total"},
                   {"median"},
                   {"P95", Align::kRight, false, 1},
                   {"P99", Align::kRight, false, 2},
                   {"batch", Align::kRight, false, 3},
                   {"tokens/s"},
                   {"device busy"},
                   {"named by", Align::kLeft, false, 4}});
  size_t row_count = 0;
  for (const analysis::InferenceRow& row : page.result.Get<analysis::Inference>().rows) {
    if (!page.Shows(row.rank_index) || ++row_count > page.options.top) continue;
    table.AddRow({page.RankLabel(row.rank_index), analysis::InferencePhaseName(row.phase), FormatCount(row.phase_count),
                  FormatDuration(row.total_ns), FormatDuration(row.duration.median_ns),
                  FormatDuration(row.duration.p95_ns), FormatDuration(row.duration.p99_ns),
                  row.mean_request_count ? FormatNumber(*row.mean_request_count) : "-", WholeNumber(row.tokens_per_s),
                  FormatPercent(row.busy_ratio), analysis::InferenceEngineName(row.engine)});
  }
  if (row_count > 0) page.Write(table, row_count);
  WriteRequests(page);
  if (row_count == 0 && page.result.Get<analysis::Inference>().requests.empty()) {
    page.Paragraph("No range is marked as prefill, decode or a request.");
  }
}

}  // namespace lockstep::report
