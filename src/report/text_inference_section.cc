// Section of the pass "inference".
#include <fmt/format.h>

#include <cmath>

#include "analysis/parallelism/parallelism.h"
#include "report/format.h"
#include "report/text_page.h"

namespace lockstep::report {
namespace {

std::string WholeNumber(std::optional<double> value) {
  return value ? FormatCount(static_cast<uint64_t>(std::llround(*value))) : "-";
}

void WriteRequests(const TextPage& page) {
  const auto& requests = ParallelismOf(page.result).inference_requests;
  if (requests.empty()) return;
  page.out << '\n';
  TextTable table({{"rank"},
                   {"requests"},
                   {"latency", Align::kRight, false, 1},
                   {"P95"},
                   {"P99"},
                   {"to first token", Align::kRight, false, 2},
                   {"P95", Align::kRight, false, 2},
                   {"P99", Align::kRight, false, 2}});
  size_t row_count = 0;
  for (const analysis::InferenceRequestRow& row : requests) {
    if (!page.Shows(row.rank_index) || ++row_count > page.options.top) continue;
    const auto& first = row.first_token;
    table.AddRow({page.RankLabel(row.rank_index), FormatCount(row.request_count), FormatDuration(row.latency.median_ns),
                  FormatDuration(row.latency.p95_ns), FormatDuration(row.latency.p99_ns),
                  first ? FormatDuration(first->median_ns) : "-", first ? FormatDuration(first->p95_ns) : "-",
                  first ? FormatDuration(first->p99_ns) : "-"});
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
  for (const analysis::InferenceRow& row : ParallelismOf(page.result).inference) {
    if (!page.Shows(row.rank_index) || ++row_count > page.options.top) continue;
    table.AddRow({page.RankLabel(row.rank_index), analysis::InferencePhaseName(row.phase), FormatCount(row.phase_count),
                  FormatDuration(row.total_ns), FormatDuration(row.duration.median_ns),
                  FormatDuration(row.duration.p95_ns), FormatDuration(row.duration.p99_ns),
                  row.mean_request_count ? FormatNumber(*row.mean_request_count) : "-", WholeNumber(row.tokens_per_s),
                  FormatPercent(row.busy_ratio), analysis::InferenceEngineName(row.engine)});
  }
  if (row_count > 0) page.Write(table, row_count);
  WriteRequests(page);
  if (row_count == 0 && ParallelismOf(page.result).inference_requests.empty()) {
    page.Paragraph("No range is marked as prefill, decode or a request.");
  }
}

}  // namespace lockstep::report
