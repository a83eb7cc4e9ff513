// Section of the pass "counters".
#include <fmt/format.h>

#include "analysis/counters/counters.h"
#include "present/report/format.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

std::string Where(const TextPage& page, size_t rank_index, std::optional<int32_t> device) {
  if (!device) return page.RankLabel(rank_index);
  return fmt::format("{} dev {}", page.RankLabel(rank_index), *device);
}

void WriteCountersOfRank(const TextPage& page) {
  TextTable table({{"counter", Align::kLeft, true},
                   {"device", Align::kRight, false, 3},
                   {"unit", Align::kLeft, false, 2},
                   {"samples", Align::kRight, false, 1},
                   {"mean"},
                   {"min", Align::kRight, false, 4},
                   {"median"},
                   {"P95"},
                   {"max"}});
  size_t row_count = 0;
  for (const analysis::CounterRow& row : page.result.Get<analysis::Counters>().rows) {
    if (!page.Shows(row.rank_index) || ++row_count > page.options.top) continue;
    table.AddRow({Printable(row.name), row.device ? fmt::format("{}", *row.device) : "-", Printable(row.unit),
                  FormatCount(row.sample_count), FormatNumber(row.mean), FormatNumber(row.min),
                  FormatNumber(row.median), FormatNumber(row.p95), FormatNumber(row.max)});
  }
  if (row_count > 0) page.Write(table, row_count);
}

}  // namespace

void WriteCounterSection(const TextPage& page) {
  page.Heading("COUNTERS", "hardware metrics and what the program counts: means over time, of ranks and devices");
  const auto& balances = page.result.Get<analysis::Counters>().balance;
  if (balances.empty()) {
    page.Paragraph("None recorded. nsys samples devices with --gpu-metrics-devices=cuda-visible.");
    return;
  }
  if (page.options.rank) return WriteCountersOfRank(page);
  TextTable table({{"counter", Align::kLeft, true},
                   {"unit", Align::kLeft, false, 2},
                   {"series", Align::kRight, false, 1},
                   {"mean"},
                   {"lowest"},
                   {"on", Align::kLeft},
                   {"highest"},
                   {"on", Align::kLeft}});
  size_t row_count = 0;
  for (const analysis::CounterBalanceRow& row : balances) {
    if (++row_count > page.options.top) continue;
    table.AddRow({Printable(row.name), Printable(row.unit), FormatCount(row.series_count), FormatNumber(row.mean),
                  FormatNumber(row.lowest_mean), Where(page, row.lowest_rank_index, row.lowest_device),
                  FormatNumber(row.highest_mean), Where(page, row.highest_rank_index, row.highest_device)});
  }
  page.Write(table, row_count);
}

}  // namespace lockstep::report
