#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "present/report/comparison_report.h"
#include "present/report/delta_text.h"
#include "present/report/format.h"
#include "present/report/style.h"
#include "present/report/text_page.h"
#include "present/report/text_table.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using comparison::Change;
using comparison::Comparison;
using comparison::Delta;
using comparison::EventClass;

struct Page {
  const Comparison& comparison;
  const TextOptions& options;
  Style style;
  std::ostream& out;

  void Heading(std::string_view title, std::string_view note) const {
    out << '\n' << style(Paint::kStrong, title);
    if (!note.empty())
      out << "  "
          << style(Paint::kFaint, Truncate(note, options.width - static_cast<int>(title.size()) - 2, style.Ellipsis()));
    out << '\n';
  }
};

void WriteHead(const Page& page) {
  const Comparison& c = page.comparison;
  for (const auto* run : {&c.a, &c.b}) {
    const std::string text = fmt::format("{}  {}: {} of {}, {}{}", run == &c.a ? "A" : "B", Printable(run->label),
                                         Plural(run->rank_count, "rank"), run->world_size,
                                         Plural(run->steps.size(), run->has_steps ? "step" : "window"),
                                         run->device.empty() ? std::string() : ", " + Printable(run->device));
    page.out << Truncate(text, page.options.width, page.style.Ellipsis()) << '\n';
  }
  page.out << '\n';
  WriteVerdict(c.verdict, page.options.width, page.style, page.out);
}

void WriteParts(const Page& page) {
  const Comparison& c = page.comparison;
  page.Heading("STEP", "medians; the job's step is its slowest rank's, parts are means over ranks");
  TextTable table = DeltaTable(c.options.confidence);
  AddDelta(&table, "step", c.step);
  for (size_t p = 1; p < comparison::kPartCount; ++p) {
    const Delta& part = c.parts[p];
    if (part.a == 0 && part.b == 0) continue;
    AddDelta(&table, PartLabel(static_cast<comparison::Part>(p)), part);
  }
  table.Write(page.style, page.options.width, page.out);
}

void WriteRanks(const Page& page) {
  const Comparison& c = page.comparison;
  if (c.ranks.empty() || (c.ranks.size() == 1 && c.only_a.empty() && c.only_b.empty())) return;
  page.Heading("RANKS", "own time: the step less exposed communication; largest change first");
  TextTable table({{"rank"},
                   {"own A"},
                   {"own B"},
                   {"change"},
                   {Level(c.options.confidence), Align::kRight, false, 2},
                   {"", Align::kLeft},
                   {"step"},
                   {"exposed comm"}});
  const auto change_of = [](const Delta& delta) {
    return delta.shift ? SignedTime(delta.shift->estimate) : std::string("-");
  };
  size_t shown = 0;
  for (const comparison::RankDelta& rank : c.ranks) {
    if (shown++ == page.options.top) break;
    table.AddRow({{fmt::format("{}", rank.rank)},
                  {FormatMeanDuration(rank.own.a)},
                  {FormatMeanDuration(rank.own.b)},
                  {change_of(rank.own), PaintOf(rank.own.change)},
                  {Interval(rank.own)},
                  {Word(rank.own.change, rank.own), PaintOf(rank.own.change)},
                  {change_of(rank.parts[0])},
                  {change_of(rank.parts[static_cast<size_t>(comparison::Part::kExposedCommunication)])}});
  }
  table.Write(page.style, page.options.width, page.out);
  if (c.ranks.size() > page.options.top)
    page.out << fmt::format("  {} more ranks (--top)\n", c.ranks.size() - page.options.top);
}

void WriteNames(const Page& page, EventClass kind, const char* title) {
  std::map<Change, size_t> counts;
  std::vector<const comparison::NameDelta*> rows;
  size_t normalised = 0;
  for (const comparison::NameDelta& row : page.comparison.names) {
    if (row.kind != kind) continue;
    ++counts[row.change];
    normalised += row.pair.match == comparison::NameMatch::kNormalised ? 1 : 0;
    rows.push_back(&row);
  }
  if (rows.empty()) return;
  std::string note = "per rank and step: ";
  bool first = true;
  for (const auto& [change, count] : counts) {
    note += fmt::format("{}{} {}", std::exchange(first, false) ? "" : ", ", count,
                        change == Change::kNone      ? "same"
                        : change == Change::kUnknown ? "untold"
                                                     : ChangeName(change));
  }
  if (normalised > 0) note += fmt::format("; {} matched without template arguments", normalised);
  page.Heading(title, note);
  TextTable table({{"change"},
                   {"A"},
                   {"B"},
                   {"a call", Align::kRight, false, 1},
                   {"calls A", Align::kRight, false, 2},
                   {"calls B", Align::kRight, false, 2},
                   {"", Align::kLeft},
                   {"name", Align::kLeft, true, 0, Shorten::kName, 26}});
  size_t shown = 0;
  for (const comparison::NameDelta* row : rows) {
    if (shown++ == page.options.top) break;
    table.AddRow({{SignedTime(row->delta_ns()), PaintOf(row->change)},
                  {FormatMeanDuration(row->step.a)},
                  {FormatMeanDuration(row->step.b)},
                  {SignedPercent(row->call.ratio())},
                  {FormatNumber(row->calls_a)},
                  {FormatNumber(row->calls_b)},
                  {Word(row->change, row->call), PaintOf(row->change)},
                  {row->pair.b ? row->name_b : row->name_a}});
  }
  table.Write(page.style, page.options.width, page.out);
}

void WriteCollectives(const Page& page) {
  if (page.comparison.collectives.empty()) return;
  page.Heading("COLLECTIVES", "by operation and size; per step; waiting of all ranks added up");
  TextTable table({{"collective", Align::kLeft},
                   {"size"},
                   {"transfer A"},
                   {"B"},
                   {"", Align::kLeft},
                   {"wait A"},
                   {"B"},
                   {"busbw A", Align::kRight, false, 1},
                   {"B", Align::kRight, false, 1}});
  size_t shown = 0;
  for (const comparison::CollectiveDelta& row : page.comparison.collectives) {
    if (shown++ == page.options.top) break;
    table.AddRow({{row.name},
                  {FormatBytes(row.bytes)},
                  {row.timed_a ? FormatMeanDuration(row.transfer.a) : "-"},
                  {row.timed_b ? FormatMeanDuration(row.transfer.b) : "-"},
                  {Word(row.change, row.transfer), PaintOf(row.change)},
                  {row.timed_a ? FormatMeanDuration(row.wait.a) : "-"},
                  {row.timed_b ? FormatMeanDuration(row.wait.b) : "-"},
                  {FormatRate(row.busbw_a)},
                  {FormatRate(row.busbw_b)}});
  }
  table.Write(page.style, page.options.width, page.out);
}

void WriteMemory(const Page& page) {
  if (page.comparison.memory.empty()) return;
  page.Heading("MEMORY", "peak of the caching allocator");
  TextTable table({{"rank"}, {"device"}, {"allocated A"}, {"B"}, {"reserved A"}, {"B"}});
  size_t shown = 0;
  for (const comparison::MemoryDelta& row : page.comparison.memory) {
    if (shown++ == std::min<size_t>(page.options.top, 3)) break;
    table.AddRow({{fmt::format("{}", row.rank)},
                  {row.device < 0 ? std::string("cpu") : fmt::format("{}", row.device)},
                  {FormatBytes(row.allocated_a)},
                  {FormatBytes(row.allocated_b)},
                  {FormatBytes(row.reserved_a)},
                  {FormatBytes(row.reserved_b)}});
  }
  table.Write(page.style, page.options.width, page.out);
}

void WriteFindings(const Page& page) {
  size_t stayed = 0;
  size_t shown = 0;
  page.Heading("FINDINGS", "");
  for (const comparison::FindingDelta& row : page.comparison.findings) {
    if (row.state == comparison::FindingDelta::State::kStayed) {
      ++stayed;
      continue;
    }
    if (shown++ >= page.options.top) continue;
    const bool appeared = row.state == comparison::FindingDelta::State::kAppeared;
    const std::string text = fmt::format("{} {}", appeared ? "+ new in B:" : "- gone in B:", Printable(row.title));
    page.out << "  "
             << page.style(appeared ? Paint::kWarn : Paint::kGood,
                           Truncate(text, page.options.width - 2, page.style.Ellipsis()))
             << '\n';
  }
  if (shown > page.options.top) page.out << fmt::format("  {} more (--top)\n", shown - page.options.top);
  page.out << fmt::format("  {} in both runs\n", stayed);
}

}  // namespace

void WriteComparisonText(const Comparison& comparison, const TextOptions& options, std::ostream& out) {
  const Page page{comparison, options, {options.colour, options.unicode}, out};
  WriteHead(page);
  WriteParts(page);
  WriteRanks(page);
  WriteNames(page, EventClass::kKernel, "KERNELS");
  WriteNames(page, EventClass::kOperator, "OPERATORS");
  WriteCollectives(page);
  WriteMemory(page);
  WriteFindings(page);
  out.flush();
}

}  // namespace lockstep::report
