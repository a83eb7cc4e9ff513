// The section critical_path: which chain of work over all ranks fixes the step time.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/critical_path/critical_path.h"
#include "present/report/format.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using analysis::CriticalPathRow;
using analysis::CriticalPathStep;
using graph::EdgeKind;

struct PathSums {
  size_t step_count = 0;
  int64_t step_ns = 0;
  int64_t path_ns = 0;
  int64_t largest_error_ns = 0;
  std::array<int64_t, graph::kEdgeKindCount> kind_ns = {};
  std::map<size_t, int64_t> rank_ns;
  std::map<size_t, int64_t> rank_slack_ns;
  std::map<std::pair<EdgeKind, NameId>, int64_t> name_ns;
};

PathSums Sum(const TextPage& page) {
  PathSums sums;
  for (const CriticalPathStep& step : page.result.Get<analysis::CriticalPath>().steps) {
    if (page.options.step && step.step != *page.options.step) continue;
    ++sums.step_count;
    sums.step_ns += step.step_ns;
    sums.path_ns += step.path_ns;
    sums.largest_error_ns = std::max(sums.largest_error_ns, std::abs(step.path_ns - step.step_ns));
    for (size_t i = 0; i < sums.kind_ns.size(); ++i) sums.kind_ns[i] += step.kind_ns[i];
    for (const analysis::RankSlack& slack : step.slack) {
      const auto [least, is_new] = sums.rank_slack_ns.try_emplace(slack.rank_index, slack.slack_ns);
      if (!is_new) least->second = std::min(least->second, slack.slack_ns);
    }
  }
  for (const CriticalPathRow& row : page.result.Get<analysis::CriticalPath>().rows) {
    if (page.options.step && row.step != *page.options.step) continue;
    sums.rank_ns[row.rank_index] += row.path_ns;
    sums.name_ns[{row.kind, row.name}] += row.path_ns;
  }
  return sums;
}

std::string KindWords(EdgeKind kind) {
  std::string words = graph::EdgeKindName(kind);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

/// Shares of the path, largest first.
template <typename Key>
std::vector<std::pair<int64_t, Key>> LargestFirst(const std::map<Key, int64_t>& sums) {
  std::vector<std::pair<int64_t, Key>> list;
  for (const auto& [key, sum_ns] : sums) list.emplace_back(sum_ns, key);
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return list;
}

void WriteKinds(const TextPage& page, const PathSums& sums) {
  std::map<EdgeKind, int64_t> kinds;
  for (size_t i = 0; i < sums.kind_ns.size(); ++i) {
    if (sums.kind_ns[i] != 0) kinds[static_cast<EdgeKind>(i)] = sums.kind_ns[i];
  }
  const auto steps = static_cast<int64_t>(sums.step_count);
  TextTable table({{"category", Align::kLeft, true}, {"per step"}, {"share"}});
  for (const auto& [sum_ns, kind] : LargestFirst(kinds)) {
    table.AddRow({KindWords(kind), FormatDuration(sum_ns / steps),
                  FormatPercent(static_cast<double>(sum_ns) / static_cast<double>(sums.path_ns))});
  }
  table.Write(page.style, page.options.width, page.out);
}

void WriteRanks(const TextPage& page, const PathSums& sums) {
  const auto steps = static_cast<int64_t>(sums.step_count);
  TextTable table({{"rank", Align::kLeft}, {"on the path per step"}, {"share"}, {"least slack"}});
  std::map<size_t, int64_t> ranks = sums.rank_ns;
  for (const auto& entry : sums.rank_slack_ns) ranks.try_emplace(entry.first, 0);
  size_t count = 0;
  for (const auto& [sum_ns, rank] : LargestFirst(ranks)) {
    if (!page.Shows(rank) || ++count > page.options.top) continue;
    const auto slack = sums.rank_slack_ns.find(rank);
    table.AddRow({page.RankLabel(rank), FormatDuration(sum_ns / steps),
                  FormatPercent(static_cast<double>(sum_ns) / static_cast<double>(sums.path_ns)),
                  slack == sums.rank_slack_ns.end() ? "-" : FormatDuration(slack->second)});
  }
  page.Write(table, count);
}

void WriteNames(const TextPage& page, const PathSums& sums) {
  const auto steps = static_cast<int64_t>(sums.step_count);
  std::vector<std::tuple<int64_t, std::string, EdgeKind>> names;
  for (const auto& [key, sum_ns] : sums.name_ns) {
    const std::string_view name = page.run.names[key.second];
    if (!name.empty()) names.emplace_back(sum_ns, std::string(name), key.first);
  }
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
    if (std::get<0>(a) != std::get<0>(b)) return std::get<0>(a) > std::get<0>(b);
    return std::tie(std::get<1>(a), std::get<2>(a)) < std::tie(std::get<1>(b), std::get<2>(b));
  });
  TextTable table(
      {{"name", Align::kLeft, true, 0, Shorten::kName}, {"category", Align::kLeft, false, 1}, {"per step"}, {"share"}});
  for (size_t i = 0; i < std::min(names.size(), page.options.top); ++i) {
    const auto& [sum_ns, name, kind] = names[i];
    table.AddRow({Printable(name), KindWords(kind), FormatDuration(sum_ns / steps),
                  FormatPercent(static_cast<double>(sum_ns) / static_cast<double>(sums.path_ns))});
  }
  page.Write(table, names.size());
}

}  // namespace

void WriteCriticalPathSection(const TextPage& page) {
  page.Heading("CRITICAL PATH", "the chain of work over all ranks that fixes the step time");
  const PathSums sums = Sum(page);
  if (sums.path_ns <= 0) {
    page.Paragraph("No path: the traces hold nothing that takes time.");
    return;
  }
  const auto steps = static_cast<int64_t>(sums.step_count);
  page.Paragraph(fmt::format("{}, {} each; the path explains them to within {}.", Plural(sums.step_count, "step"),
                             FormatDuration(sums.step_ns / steps), FormatDuration(sums.largest_error_ns)));
  WriteKinds(page, sums);
  WriteRanks(page, sums);
  WriteNames(page, sums);
}

}  // namespace lockstep::report
