// Section about what made ranks wait first of all.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/collectives.h"
#include "analysis/wait_states/chain_text.h"
#include "analysis/wait_states/wait_states.h"
#include "present/report/format.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

constexpr size_t kMaxTold = 5;

std::string RanksOf(const TextPage& page, const analysis::RootCauseRow& cause) {
  if (cause.rank_index) return page.RankLabel(*cause.rank_index);
  std::vector<int32_t> ranks;
  for (const size_t rank_index : cause.rank_indices) ranks.push_back(page.run.ranks[rank_index].rank.value);
  return RankList(ranks, 3);
}

void WriteKinds(const TextPage& page) {
  std::map<analysis::WaitStateKind, analysis::WaitStateRow> sums;
  for (const analysis::WaitStateRow& row : page.result.Get<analysis::WaitStates>().rows) {
    if (!page.Shows(row.rank_index)) continue;
    sums[row.kind].count += row.count;
    sums[row.kind].wait_ns += row.wait_ns;
  }
  TextTable table({{"wait state", Align::kLeft}, {"count"}, {"waiting"}});
  for (const auto& [kind, row] : sums) {
    std::string name = WaitStateKindName(kind);
    std::replace(name.begin(), name.end(), '_', ' ');
    table.AddRow({name, FormatCount(row.count), FormatDuration(row.wait_ns)});
  }
  page.Write(table, sums.size());
}

}  // namespace

void WriteWaitStatesSection(const TextPage& page) {
  page.Heading("WAIT STATES", "all ranks' waiting, and what began it");
  if (page.result.Get<analysis::WaitStates>().rows.empty()) {
    page.Paragraph("No waiting between ranks is told: it takes complete collectives or messages.");
    return;
  }
  WriteKinds(page);
  const std::vector<analysis::RootCauseRow>& causes = page.result.Get<analysis::WaitStates>().causes;
  page.out << '\n';
  page.Paragraph(Printable(WaitVerdictText(page.run, page.result.Get<analysis::WaitStates>())));
  if (causes.empty()) return;
  page.out << '\n';
  TextTable table({{"rank"},
                   {"first cause", Align::kLeft},
                   {"what", Align::kLeft, true, 0, Shorten::kName},
                   {"direct"},
                   {"passed on"},
                   {"share"},
                   {"when", Align::kLeft, false, 1}});
  for (size_t i = 0; i < causes.size() && i < page.options.top; ++i) {
    const analysis::RootCauseRow& cause = causes[i];
    std::string name = RootCauseName(cause.cause);
    std::replace(name.begin(), name.end(), '_', ' ');
    table.AddRow({RanksOf(page, cause), name, Printable(cause.name), FormatDuration(cause.direct_wait_ns),
                  FormatDuration(cause.propagated_wait_ns), FormatPercent(cause.wait_ratio), PatternText(cause)});
  }
  page.Write(table, causes.size());
  for (size_t i = 0; i < causes.size() && i < kMaxTold; ++i) {
    if (causes[i].chains.empty()) continue;
    const auto longest = std::max_element(causes[i].chains.begin(), causes[i].chains.end(),
                                          [](const auto& a, const auto& b) { return a.hops.size() < b.hops.size(); });
    std::string text = Printable(ChainText(page.run, page.result.Get<analysis::Collectives>(), causes[i], *longest));
    text.front() = 'R';
    page.out << '\n';
    page.Paragraph(text + ".");
  }
}

}  // namespace lockstep::report
