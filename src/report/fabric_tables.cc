// The table and the section of the pass "fabric".
#include <fmt/format.h>

#include "analysis/analysis_result.h"
#include "analysis/fabric/fabric.h"
#include "report/declared_tables.h"
#include "report/format.h"
#include "report/text_page.h"
#include "report/utf8.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using analysis::FabricRow;
using model::Run;
using Type = DeclaredType;

constexpr double kGiga = 1e9;

const std::vector<FabricRow>& Fabric(const AnalysisResult& result) {
  return result.Get<analysis::FabricComparison>().rows;
}

std::vector<RowColumn<FabricRow>> Columns() {
  using Row = FabricRow;
  return {
      {"name", Type::kText, "", "Operation.", "", [](const Run&, const Row& row) { return TextCell(row.name); }},
      {"group_size", Type::kInteger, "count", "Ranks of the group.", "not known",
       [](const Run&, const Row& row) { return OptionalCell(row.group_size); }},
      {"bytes", Type::kInteger, "bytes", "Size in nccl-tests' convention.", "",
       [](const Run&, const Row& row) { return Cell(row.bytes); }},
      {"count", Type::kInteger, "count", "Collectives.", "",
       [](const Run&, const Row& row) { return Cell(row.count); }},
      {"transfer_ns", Type::kInteger, "ns", "Sum of their transfers, waiting not included.", "",
       [](const Run&, const Row& row) { return Cell(row.transfer_ns); }},
      {"busbw_median_bytes_per_s", Type::kReal, "bytes/s", "Median of their bus bandwidths.", "",
       [](const Run&, const Row& row) { return Cell(row.busbw_median_bytes_per_s); }},
      {"fabric_busbw_bytes_per_s", Type::kReal, "bytes/s", "Bus bandwidth that `lockstep bench collectives` measured.",
       "", [](const Run&, const Row& row) { return Cell(row.fabric_busbw_bytes_per_s); }},
      {"ratio", Type::kReal, "ratio", "The job's over the fabric's.", "",
       [](const Run&, const Row& row) { return Cell(row.ratio); }},
  };
}

}  // namespace

void DeclareFabricTables(std::vector<DeclaredTable>* tables) {
  tables->push_back(DeclareTable<FabricRow>(
      "fabric", "", "Collectives of one operation and size beside what `--fabric` says that the fabric can do",
      "fabric", Fabric, Columns()));
}

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
  for (const FabricRow& row : rows) {
    if (++row_count > page.options.top) continue;
    table.AddRow({row.name, row.group_size ? fmt::format("{}", *row.group_size) : "-", FormatBytes(row.bytes),
                  FormatCount(row.count), FormatDuration(row.transfer_ns),
                  fmt::format("{:.2f}", row.busbw_median_bytes_per_s / kGiga),
                  fmt::format("{:.2f}", row.fabric_busbw_bytes_per_s / kGiga),
                  fmt::format("{:.0f} %", row.ratio * 100)});
  }
  page.Write(table, row_count);
  page.Paragraph(fmt::format("Fabric: {} ranks, {} ({}).", fabric.rank_count, Printable(fabric.backend),
                             Printable(fabric.source)));
}

}  // namespace lockstep::report
