// The section of the pass "fabric".
#include <fmt/format.h>

#include "analysis/fabric/fabric.h"
#include "present/report/format.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {

void WriteFabricSection(const TextPage& page) {
  page.Heading("FABRIC", "the job's collectives beside what was measured of the fabric (busbw, median)");
  const auto& [rows, fabric] = page.result.Get<analysis::FabricComparison>();
  const auto ratio = analysis::FabricRatio(rows);
  if (!ratio) {
    page.Paragraph("No collective of the job has both a bandwidth and a measurement of its operation.");
    return;
  }
  page.Paragraph(fmt::format("The job gets {:.0f} % of what this fabric can do, by the time that its collectives take.",
                             *ratio * 100));
  TextTable table({{"operation", Align::kLeft, true},
                   {"ranks", Align::kRight, false, 2},
                   {"size"},
                   {"count", Align::kRight, false, 1},
                   {"transfer"},
                   {"GB/s"},
                   {"fabric"},
                   {"of it"}});
  size_t row_count = 0;
  for (const analysis::FabricRow& row : rows) {
    if (++row_count > page.options.top) continue;
    table.AddRow({row.name, row.group_size ? fmt::format("{}", *row.group_size) : "-", FormatBytes(row.bytes),
                  FormatCount(row.count), FormatDuration(row.transfer_ns),
                  fmt::format("{:.2f}", row.busbw_median_bytes_per_s / 1e9),
                  fmt::format("{:.2f}", row.fabric_busbw_bytes_per_s / 1e9), fmt::format("{:.0f} %", row.ratio * 100)});
  }
  page.Write(table, row_count);
  page.Paragraph(fmt::format("Fabric: {} ranks, {} ({}).", fabric.rank_count, Printable(fabric.backend),
                             Printable(fabric.source)));
}

}  // namespace lockstep::report
