#include <fmt/format.h>

#include <algorithm>

#include "present/report/hang/hang_text_parts.h"
#include "present/report/text_page.h"
#include "present/report/text_table.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using evidence::StackFrame;
using hang::CodeSite;

constexpr size_t kFewFrames = 12;

std::string_view BaseOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string FrameText(const StackFrame& frame) {
  std::string text = frame.file.empty() ? "?" : std::string(BaseOf(frame.file));
  if (frame.line > 0) text += fmt::format(":{}", frame.line);
  if (!frame.function.empty()) text += " " + frame.function;
  return Printable(text);
}

bool Same(const StackFrame& a, const StackFrame& b) {
  return a.function == b.function && a.file == b.file && a.line == b.line;
}

/// A site's text about one rank, before "at FILE", adapted to its number of ranks: "is in" becomes "are in" for two
/// ranks.
std::string Doing(std::string what, size_t rank_count) {
  if (what == "is in" || what == "is stopped in") what.erase(what.size() - 3);
  if (rank_count < 2) return what;
  if (what == "is" || what.starts_with("is ")) return "are" + what.substr(2);
  if (what.starts_with("waits ")) return "wait" + what.substr(5);
  return what;
}

void WriteSite(const HangTextPage& page, const CodeSite& site) {
  std::string text = fmt::format("{} ({})", RanksText(site.ranks), site.role);
  if (!site.what.empty()) text += " " + Doing(site.what, site.ranks.size());
  if (!site.file.empty()) {
    text += fmt::format(" at {}", site.file);
    if (site.line > 0) text += fmt::format(":{}", site.line);
  }
  if (!site.function.empty()) text += fmt::format(" in {}", site.function);
  page.Item(page.style.Bullet(), text, site.role == "culprit" ? Paint::kBad : Paint::kPlain);
}

/// One column of the side-by-side view: cut and filled to `width`.
std::string Column(const std::string& text, int width, const Style& style) {
  std::string cut = Truncate(text, width, style.Ellipsis());
  const int used = DisplayWidth(cut);
  if (used < width) cut.append(static_cast<size_t>(width - used), ' ');
  return cut;
}

/// Outermost frames first, so that the two run together until they part.
void WriteSideBySide(const HangTextPage& page, const CodeSite& left, const CodeSite& right) {
  const int width = std::max(12, (page.options.columns - 9) / 2);
  const auto line = [&](std::string_view mark, const std::string& a, const std::string& b, Paint paint) {
    std::string text =
        fmt::format("  {} {} | {}", mark, Column(a, width, page.style), Truncate(b, width, page.style.Ellipsis()));
    while (!text.empty() && text.back() == ' ') text.pop_back();
    page.out << page.style(paint, text) << '\n';
  };
  page.out << '\n';
  line(" ", fmt::format("{} ({})", RanksText(left.ranks), left.role),
       fmt::format("{} ({})", RanksText(right.ranks), right.role), Paint::kStrong);
  const size_t depth = std::max(left.stack.size(), right.stack.size());
  const auto frame = [](const CodeSite& site, size_t i) -> const StackFrame* {
    return i < site.stack.size() ? &site.stack[site.stack.size() - 1 - i] : nullptr;
  };
  size_t parting = 0;
  while (parting < depth) {
    const StackFrame* a = frame(left, parting);
    const StackFrame* b = frame(right, parting);
    if (a == nullptr || b == nullptr || !Same(*a, *b)) break;
    ++parting;
  }
  // The outer frames that both share say little.
  const size_t first = page.options.all || parting < 3 ? 0 : parting - 2;
  if (first > 0) line(" ", fmt::format("{} outer frames are equal", first), "", Paint::kFaint);
  const size_t last = page.options.all ? depth : std::min(depth, first + kFewFrames);
  for (size_t i = first; i < last; ++i) {
    const StackFrame* a = frame(left, i);
    const StackFrame* b = frame(right, i);
    line(i == parting ? page.style.Pointer() : " ", a ? FrameText(*a) : "", b ? FrameText(*b) : "",
         i == parting ? Paint::kStrong : Paint::kPlain);
  }
  if (last < depth) line(" ", fmt::format("{} inner frames more (--all)", depth - last), "", Paint::kFaint);
}

/// "118: 0-2 / 117: 3", the furthest first.
std::string Standing(const hang::GroupState& group, std::optional<int64_t> hang::RankInGroup::*field) {
  std::vector<std::pair<int64_t, int32_t>> at;
  std::vector<int32_t> unknown;
  for (const hang::RankInGroup& rank : group.ranks) {
    if (rank.*field) {
      at.emplace_back(-*(rank.*field), rank.rank);
    } else {
      unknown.push_back(rank.rank);
    }
  }
  std::sort(at.begin(), at.end());
  if (at.empty()) return "-";
  if (at.front().first == at.back().first && unknown.empty()) return fmt::format("{}", -at.front().first);
  std::string text;
  for (size_t i = 0; i < at.size();) {
    std::vector<int32_t> ranks;
    const int64_t number = at[i].first;
    for (; i < at.size() && at[i].first == number; ++i) ranks.push_back(at[i].second);
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", -number, RankList(ranks, 3));
  }
  if (!unknown.empty()) text += fmt::format("; ?: {}", RankList(unknown, 3));
  return text;
}

/// Whether its ranks stand apart, or wait.
bool Matters(const hang::GroupState& group) {
  const auto& ranks = group.ranks;
  return std::any_of(ranks.begin(), ranks.end(), [&](const hang::RankInGroup& rank) {
    return !rank.waits_for.empty() || rank.last_enqueued != ranks.front().last_enqueued || !rank.open_operation.empty();
  });
}

}  // namespace

void WriteSites(const HangTextPage& page) {
  const std::vector<CodeSite>& sites = page.diagnosis.verdict.sites;
  if (sites.empty()) return;
  page.Heading("CODE");
  const size_t limit = page.options.all ? sites.size() : 8;
  for (size_t i = 0; i < sites.size() && i < limit; ++i) WriteSite(page, sites[i]);
  if (sites.size() > limit) page.Item(" ", fmt::format("{} more (--all)", sites.size() - limit), Paint::kFaint);
  const auto has_stack = [](const char* role) {
    return [role](const CodeSite& site) { return site.role == role && !site.stack.empty(); };
  };
  const auto culprit = std::find_if(sites.begin(), sites.end(), has_stack("culprit"));
  const auto victim = std::find_if(sites.begin(), sites.end(), has_stack("victim"));
  if (culprit != sites.end() && victim != sites.end()) WriteSideBySide(page, *culprit, *victim);
}

void WriteCycle(const HangTextPage& page) {
  const std::vector<hang::WaitEdge>& cycle = page.diagnosis.verdict.cycle;
  if (cycle.empty()) return;
  page.Heading("CYCLE", "each waits for the next");
  for (const hang::WaitEdge& edge : cycle) {
    std::string text = fmt::format("rank {} waits", edge.rank);
    if (!edge.operation.empty()) text += " in " + edge.operation;
    if (edge.sequence) text += fmt::format(" #{}", *edge.sequence);
    if (!edge.group.empty()) text += " of group " + edge.group;
    text += " for " + RanksText(edge.waits_for);
    page.Item(page.style.Arrow(), text);
  }
}

void WriteGroups(const HangTextPage& page) {
  std::vector<const hang::GroupState*> shown;
  for (const hang::GroupState& group : page.diagnosis.groups) {
    if (group.ranks.empty()) continue;
    if (page.options.all || group.name == page.diagnosis.verdict.group || Matters(group)) shown.push_back(&group);
  }
  if (shown.empty()) return;
  page.Heading("GROUPS", "sequence numbers that ranks stand at");
  TextTable table({{"group", Align::kLeft},
                   {"members", Align::kLeft, false, 2},
                   {"enqueued", Align::kLeft, true},
                   {"completed", Align::kLeft, false, 1},
                   {"open", Align::kLeft, false, 3}});
  const size_t limit = page.options.all ? shown.size() : 10;
  for (size_t i = 0; i < shown.size() && i < limit; ++i) {
    const hang::GroupState& group = *shown[i];
    std::string name = group.name.empty() ? "?" : group.name;
    if (!group.description.empty() && group.description != group.name) name += " " + group.description;
    std::vector<std::string> open;
    for (const hang::RankInGroup& rank : group.ranks) {
      if (!rank.open_operation.empty()) open.push_back(rank.open_operation);
    }
    std::sort(open.begin(), open.end());
    open.erase(std::unique(open.begin(), open.end()), open.end());
    const std::string operations = fmt::format("{}", fmt::join(open, ", "));
    table.AddRow({{Truncate(Printable(name), 28, page.style.Ellipsis()),
                   group.name == page.diagnosis.verdict.group ? Paint::kStrong : Paint::kPlain},
                  {RankList(group.members, 3)},
                  {Standing(group, &hang::RankInGroup::last_enqueued)},
                  {Truncate(Standing(group, &hang::RankInGroup::last_completed), 36, page.style.Ellipsis())},
                  {Truncate(Printable(operations), 24, page.style.Ellipsis())}});
  }
  if (shown.size() > limit) table.AddNote(fmt::format("{} more (--all)", shown.size() - limit));
  table.Write(page.style, page.options.columns, page.out);
}

void WriteStacks(const HangTextPage& page) {
  const std::vector<hang::StackGroup>& stacks = page.diagnosis.stacks;
  if (stacks.empty()) return;
  page.Heading("STACKS", "equal ones of main threads, the smallest set first; innermost frame first");
  const size_t limit = page.options.all ? stacks.size() : 6;
  for (size_t i = 0; i < stacks.size() && i < limit; ++i) {
    page.Item(page.style.Bullet(), fmt::format("{} ({})", RanksText(stacks[i].ranks), stacks[i].source),
              Paint::kStrong);
    const std::vector<StackFrame>& frames = stacks[i].frames;
    const size_t depth = page.options.all ? frames.size() : std::min<size_t>(frames.size(), 5);
    for (size_t f = 0; f < depth; ++f) page.Item("   ", FrameText(frames[f]));
    if (depth < frames.size()) page.Item("   ", fmt::format("{} outer frames", frames.size() - depth), Paint::kFaint);
  }
  if (stacks.size() > limit) page.Item(" ", fmt::format("{} more sets (--all)", stacks.size() - limit), Paint::kFaint);
}

}  // namespace lockstep::report
