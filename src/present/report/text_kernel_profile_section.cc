// Section of the pass "measured_kernels".
#include <fmt/format.h>

#include <string>

#include "analysis/kernel_profile/measured_kernels.h"
#include "present/report/format.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

std::string RatioText(std::optional<double> ratio) { return ratio ? FormatPercent(*ratio) : "-"; }
std::string RankText(std::optional<int32_t> rank) { return rank ? fmt::format("{}", *rank) : "-"; }

void WriteLaunches(const TextPage& page, const analysis::KernelProfileTables& tables) {
  TextTable table({{"kernel", Align::kLeft, true},
                   {"rank", Align::kRight, false, 1},
                   {"time"},
                   {"bound by", Align::kLeft},
                   {"compute"},
                   {"memory"},
                   {"occupancy", Align::kRight, false, 3},
                   {"of roof", Align::kRight, false, 2}});
  size_t place = 0;
  for (size_t i = 0; i < tables.launches.size() && i < page.options.top; ++i) {
    const model::KernelLaunch& launch = *tables.launches[i].launch;
    // The first of its rooflines is of the arithmetic that it did most of.
    std::optional<double> roof;
    for (; place < tables.rooflines.size() && tables.rooflines[place].launch == &launch; ++place) {
      if (!roof) roof = tables.rooflines[place].point.roof_ratio;
    }
    table.AddRow({Printable(launch.kernel), RankText(launch.rank),
                  launch.duration_ns ? FormatDuration(*launch.duration_ns) : "-",
                  analysis::KernelBoundName(tables.launches[i].bound), RatioText(launch.compute_ratio),
                  RatioText(launch.memory_ratio), RatioText(launch.occupancy_ratio), RatioText(roof)});
  }
  page.Write(table, tables.launches.size());
}

void WriteSums(const TextPage& page, const analysis::KernelProfileTables& tables) {
  TextTable table({{"kernel (nsys stats)", Align::kLeft, true},
                   {"total"},
                   {"count"},
                   {"longest", Align::kRight, false, 1},
                   {"most/mean"},
                   {"most on rank"}});
  size_t row_count = 0;
  for (const analysis::NameOverRanks& sum : tables.sums) {
    if (sum.kind != model::SummedKind::kKernel || ++row_count > page.options.top) continue;
    table.AddRow({Printable(sum.name), FormatDuration(sum.total_ns), FormatCount(sum.count), FormatDuration(sum.max_ns),
                  sum.imbalance ? FormatNumber(*sum.imbalance) : "-", RankText(sum.most_rank)});
  }
  if (row_count > 0) page.Write(table, row_count);
}

}  // namespace

void WriteKernelProfileSection(const TextPage& page) {
  page.Heading("MEASURED KERNELS", "what bounds the launches that ncu measured");
  const analysis::KernelProfileTables& tables = page.result.Get<analysis::KernelProfileTables>();
  if (tables.profiles == nullptr) {
    page.Paragraph(
        "No tables of ncu --csv or nsys stats lie beside the traces. lockstep run --profile ncu makes them; lockstep "
        "kernels reads them alone.");
    return;
  }
  if (!tables.launches.empty()) WriteLaunches(page, tables);
  WriteSums(page, tables);
  page.Paragraph(
      "Times are those under ncu, at its clocks and with cold caches. More of the same tables: lockstep kernels.");
}

}  // namespace lockstep::report
