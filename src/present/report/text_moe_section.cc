// Section of the pass "moe".
#include <fmt/format.h>

#include "analysis/parallelism/moe.h"
#include "present/report/format.h"
#include "present/report/text_page.h"

namespace lockstep::report {
namespace {

std::string Times(std::optional<double> ratio) { return ratio ? fmt::format("{:.2f}x", *ratio) : "-"; }

}  // namespace

void WriteMoeSection(const TextPage& page) {
  page.Heading("MOE", "tokens by all_to_all; load: bytes a rank gets for its experts, of the mean of its group");
  const analysis::Moe& moe = page.result.Get<analysis::Moe>();
  TextTable groups({{"group"},
                    {"ranks", Align::kRight, false, 1},
                    {"calls"},
                    {"exchanges", Align::kRight, false, 2},
                    {"largest load"},
                    {"in single exchanges"},
                    {"of rank"},
                    {"pattern", Align::kLeft}});
  for (size_t i = 0; i < moe.groups.size() && i < page.options.top; ++i) {
    const analysis::MoeRow& row = moe.groups[i];
    groups.AddRow({FormatCount(row.group), FormatCount(row.rank_count), FormatCount(row.call_count),
                   FormatCount(row.exchange_count), Times(row.load_ratio), Times(row.exchange_load_ratio),
                   row.hottest_rank_index ? page.RankLabel(*row.hottest_rank_index) : "-",
                   analysis::LoadPatternName(row.pattern)});
  }
  if (moe.groups.empty()) {
    page.Paragraph("No all_to_alls.");
    return;
  }
  page.Write(groups, moe.groups.size());
  page.out << '\n';
  TextTable ranks({{"rank"},
                   {"group", Align::kRight, false, 2},
                   {"calls", Align::kRight, false, 1},
                   {"sent"},
                   {"received"},
                   {"load"},
                   {"varies"},
                   {"duration"},
                   {"exposed"}});
  size_t rank_count = 0;
  for (const analysis::MoeRankRow& row : moe.ranks) {
    if (!page.Shows(row.rank_index) || ++rank_count > page.options.top) continue;
    ranks.AddRow({page.RankLabel(row.rank_index), FormatCount(row.group), FormatCount(row.call_count),
                  FormatBytes(row.sent_bytes), FormatBytes(row.received_bytes), Times(row.load_ratio),
                  FormatPercent(row.load_variation), FormatDuration(row.duration_ns), FormatDuration(row.exposed_ns)});
  }
  page.Write(ranks, rank_count);
}

}  // namespace lockstep::report
