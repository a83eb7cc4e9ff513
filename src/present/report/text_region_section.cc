// Section of the pass "regions".
#include <fmt/format.h>

#include "analysis/regions/regions.h"
#include "present/report/format.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

std::string WithRank(const TextPage& page, std::optional<double> imbalance, std::optional<size_t> rank_index) {
  if (!imbalance || !rank_index) return "-";
  return fmt::format("{} ({})", FormatNumber(*imbalance), page.RankLabel(*rank_index));
}

void WriteRegionsOfRank(const TextPage& page) {
  TextTable table({{"region", Align::kLeft, true},
                   {"count"},
                   {"total"},
                   {"own", Align::kRight, false, 3},
                   {"median"},
                   {"P95", Align::kRight, false, 2},
                   {"longest", Align::kRight, false, 4},
                   {"pace", Align::kRight, false, 5},
                   {"device"},
                   {"projected", Align::kRight, false, 1}});
  size_t row_count = 0;
  for (const analysis::RegionRow& row : page.result.Get<analysis::Regions>().rows) {
    if (!page.Shows(row.rank_index) || ++row_count > page.options.top) continue;
    table.AddRow({Printable(row.name), FormatCount(row.count), FormatDuration(row.total_ns), FormatDuration(row.own_ns),
                  FormatDuration(row.median_ns), FormatDuration(row.p95_ns), FormatDuration(row.max_ns),
                  FormatDuration(row.pace_ns), FormatDuration(row.device_ns), FormatDuration(row.projected_ns)});
  }
  if (row_count > 0) page.Write(table, row_count);
}

}  // namespace

void WriteRegionSection(const TextPage& page) {
  page.Heading("REGIONS", "ranges that the program marks (record_function, NVTX): means of ranks; most/mean (rank)");
  const auto& balances = page.result.Get<analysis::Regions>().balance;
  if (balances.empty()) {
    page.Paragraph("The program marks no range.");
    return;
  }
  if (page.options.rank) return WriteRegionsOfRank(page);
  TextTable table({{"region", Align::kLeft, true},
                   {"ranks", Align::kRight, false, 4},
                   {"count", Align::kRight, false, 3},
                   {"total"},
                   {"most/mean"},
                   {"own", Align::kRight, false, 2},
                   {"most/mean"},
                   {"device"},
                   {"most/mean", Align::kRight, false, 1}});
  size_t row_count = 0;
  for (const analysis::RegionBalanceRow& row : balances) {
    if (++row_count > page.options.top) continue;
    table.AddRow({Printable(row.name), FormatCount(row.rank_count), FormatCount(row.count),
                  FormatDuration(row.mean_total_ns), WithRank(page, row.total_imbalance, row.most_total_rank_index),
                  FormatDuration(row.mean_own_ns), WithRank(page, row.own_imbalance, row.most_own_rank_index),
                  FormatDuration(row.mean_device_ns),
                  WithRank(page, row.device_imbalance, row.most_device_rank_index)});
  }
  page.Write(table, row_count);
}

}  // namespace lockstep::report
