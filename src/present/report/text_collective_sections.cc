// Sections about ranks together: collectives and stragglers.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/collectives.h"
#include "analysis/stragglers.h"
#include "analysis/wait_states/wait_states.h"
#include "present/report/format.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using analysis::CollectiveInstance;
using analysis::WaitRole;

// Collectives of one group, kind and size.
struct CollectiveLine {
  const CollectiveInstance* first = nullptr;
  uint64_t count = 0;
  uint64_t skew_count = 0;
  int64_t transfer_ns = 0;
  uint64_t transfer_count = 0;
  int64_t longest_wait_ns = 0;  // sum over instances of the longest wait of a member: the skew
  double busbw_sum = 0;
  uint64_t busbw_count = 0;
  std::map<size_t, uint64_t> last;  // rank index: times last

  int64_t Cost() const { return transfer_ns + longest_wait_ns; }
};

std::string Mean(int64_t sum, uint64_t count) {
  return count == 0 ? "-" : FormatDuration(sum / static_cast<int64_t>(count));
}

std::string MostOftenLast(const TextPage& page, const CollectiveLine& line) {
  const auto most = std::max_element(line.last.begin(), line.last.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == line.last.end()) return "-";
  return fmt::format("{} ({}x)", page.RankLabel(most->first), most->second);
}

bool Member(const TextPage& page, const CollectiveInstance& instance) {
  return std::any_of(instance.members.begin(), instance.members.end(),
                     [&](const auto& member) { return page.Shows(member.rank_index); });
}

std::vector<CollectiveLine> CollectiveLines(const TextPage& page) {
  std::map<std::tuple<std::string, std::string, std::optional<int64_t>>, CollectiveLine> lines;
  for (const CollectiveInstance& instance : page.result.Get<analysis::Collectives>().instances) {
    if (page.options.rank && !Member(page, instance)) continue;
    CollectiveLine& line = lines[{instance.group, instance.name, instance.bytes}];
    if (line.first == nullptr) line.first = &instance;
    ++line.count;
    if (TellsWaits(instance)) ++line.skew_count;
    if (instance.transfer_ns) {
      line.transfer_ns += *instance.transfer_ns;
      ++line.transfer_count;
    }
    int64_t longest = 0;
    for (const auto& member : instance.members) longest = std::max(longest, member.wait_ns.value_or(0));
    line.longest_wait_ns += longest;
    if (instance.busbw_bytes_per_s) {
      line.busbw_sum += *instance.busbw_bytes_per_s;
      ++line.busbw_count;
    }
    if (instance.last_rank_index) ++line.last[*instance.last_rank_index];
  }
  std::vector<CollectiveLine> ordered;
  for (auto& [key, line] : lines) ordered.push_back(std::move(line));
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const CollectiveLine& a, const CollectiveLine& b) { return a.Cost() > b.Cost(); });
  return ordered;
}

std::string LateText(const analysis::StragglerRow& row) {
  if (row.last_count == 0) return "-";
  switch (row.role) {
    case WaitRole::kNamed: return row.chronic ? "chronic" : "at times";
    case WaitRole::kPassesOn: return "passes it on";
    case WaitRole::kNone: break;
  }
  return "not named";
}

// Where a late rank did most harm, and what it did meanwhile.
void WriteLateRank(const TextPage& page, const analysis::StragglerRow& row) {
  std::string text = fmt::format("Rank {}", page.RankLabel(row.rank_index));
  if (row.worst_instance) {
    const CollectiveInstance& worst = page.result.Get<analysis::Collectives>().instances[*row.worst_instance];
    int64_t longest = 0;
    for (const auto& member : worst.members) longest = std::max(longest, member.wait_ns.value_or(0));
    text += fmt::format(" does most harm in {} {} of group {}: others wait up to {} each.", Printable(worst.name),
                        worst.sequence, Printable(worst.group), FormatDuration(longest));
  }
  text += row.activities.empty() ? " Nothing recorded tells what it did."
                                 : " Before it arrives it spends more than its peers in:";
  page.out << '\n';
  page.Paragraph(text);
  for (const analysis::LateActivity& activity : row.activities) {
    WriteWrapped(Printable(activity.name), fmt::format("    {:>8}  ", FormatDuration(activity.excess_ns)),
                 std::string(14, ' '), page.options.width, page.out);
  }
}

}  // namespace

void WriteCollectivesSection(const TextPage& page) {
  page.Heading("COLLECTIVES", "means; skew: first to last arrival, transfer: after it");
  const std::vector<CollectiveLine> lines = CollectiveLines(page);
  if (lines.empty()) {
    page.Paragraph("No collectives in the files.");
    return;
  }
  TextTable table({{"collective", Align::kLeft},
                   {"group", Align::kLeft, true},
                   {"ranks"},
                   {"size"},
                   {"count"},
                   {"skew"},
                   {"transfer"},
                   {"busbw", Align::kRight, false, 1},
                   {"last", Align::kRight, false, 2}});
  for (size_t i = 0; i < lines.size() && i < page.options.top; ++i) {
    const CollectiveLine& line = lines[i];
    const std::optional<double> busbw =
        line.busbw_count > 0 ? std::optional(line.busbw_sum / static_cast<double>(line.busbw_count)) : std::nullopt;
    table.AddRow({Printable(line.first->name), Printable(line.first->group),
                  fmt::format("{}", line.first->members.size() + line.first->missing_ranks.size()),
                  FormatBytes(line.first->bytes), FormatCount(line.count), Mean(line.longest_wait_ns, line.skew_count),
                  Mean(line.transfer_ns, line.transfer_count), FormatRate(busbw), MostOftenLast(page, line)});
  }
  page.Write(table, lines.size());
  const auto& all = page.result.Get<analysis::Collectives>().instances;
  const auto incomplete =
      std::count_if(all.begin(), all.end(), [](const auto& instance) { return !instance.complete; });
  if (incomplete > 0) {
    const auto partly = std::count_if(all.begin(), all.end(),
                                      [](const auto& instance) { return !instance.complete && TellsWaits(instance); });
    const std::string told =
        partly == 0
            ? "no wait is told for them"
            : fmt::format("for {} of them the skew is that of the ranks that are here, for the others no wait is told",
                          FormatCount(static_cast<uint64_t>(partly)));
    page.Paragraph(fmt::format("{} of {} collectives lack a rank's window: {}.",
                               FormatCount(static_cast<uint64_t>(incomplete)), FormatCount(all.size()), told),
                   Paint::kFaint);
  }
}

void WriteStragglersSection(const TextPage& page) {
  page.Heading("STRAGGLERS", "delay: time between the second-last arrival and its own");
  std::vector<const analysis::StragglerRow*> rows;
  for (const analysis::StragglerRow& row : page.result.Get<analysis::Stragglers>().rows) {
    if (page.Shows(row.rank_index)) rows.push_back(&row);
  }
  if (rows.empty()) {
    page.Paragraph("No collective has two of its ranks here, so nobody can be called late.");
    return;
  }
  TextTable table(
      {{"rank"}, {"collectives"}, {"last in"}, {"waits"}, {"others waited"}, {"delay"}, {"late", Align::kLeft}});
  for (size_t i = 0; i < rows.size() && i < page.options.top; ++i) {
    const analysis::StragglerRow& row = *rows[i];
    std::string late = LateText(row);
    if (row.late_step_count > 0) late += fmt::format(", {}/{} steps", row.late_step_count, row.step_count);
    table.AddRow({page.RankLabel(row.rank_index), FormatCount(row.collective_count), FormatCount(row.last_count),
                  FormatDuration(row.wait_ns), FormatDuration(row.wait_given_ns), FormatDuration(row.delay_ns),
                  TableCell(late, row.role == WaitRole::kNamed ? Paint::kBad : Paint::kPlain)});
  }
  page.Write(table, rows.size());
  for (size_t i = 0; i < rows.size() && i < 3; ++i) {
    if (rows[i]->last_count > 0) WriteLateRank(page, *rows[i]);
  }
}

}  // namespace lockstep::report
