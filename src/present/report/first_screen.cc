#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "analysis/finding.h"
#include "present/report/bars.h"
#include "present/report/format.h"
#include "present/report/job_facts.h"
#include "present/report/rank_summary.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using analysis::Basis;
using analysis::Finding;
using analysis::FindingSeverity;

constexpr std::string_view kStragglerId = "straggler";

int64_t Whole(double value) { return static_cast<int64_t>(std::llround(value)); }
std::string Duration(double value) { return FormatDuration(Whole(value)); }
std::string Duration(const std::optional<double>& value) { return value ? Duration(*value) : "-"; }

std::string RanksPhrase(const JobFacts& facts) {
  if (!facts.world_size) return Plural(facts.rank_count, "rank");
  if (facts.missing_rank_count == 0) {
    return facts.rank_count == 1 ? "1 rank" : fmt::format("all {} ranks", FormatCount(facts.rank_count));
  }
  return fmt::format("{} of {} ranks (without {}{})", FormatCount(facts.rank_count),
                     FormatCount(static_cast<uint64_t>(*facts.world_size)), RankList(facts.missing_ranks, 3),
                     facts.missing_rank_count > facts.missing_ranks.size() ? ", ..." : "");
}

void WriteJob(const TextPage& page) {
  const JobFacts facts = FactsOf(page.run);
  const std::string dot(page.style.Dot());
  std::string line = RanksPhrase(facts);
  if (facts.window_count > 1) line += dot + Plural(facts.window_count, "window");
  if (!facts.hosts.empty()) {
    line += dot + (facts.hosts.size() == 1 ? Printable(facts.hosts[0]) : Plural(facts.hosts.size(), "host"));
  }
  line += dot + (facts.devices.empty() ? "CPU only" : Printable(facts.devices));
  if (!facts.backend.empty()) line += dot + Printable(facts.backend);
  WriteWrapped(line, "", "  ", page.options.width, page.out, Paint::kStrong, page.style);
  line = page.result.step_count > 0 ? Plural(static_cast<uint64_t>(page.result.step_count), "step") : "no steps marked";
  line += dot + fmt::format("window {}", FormatDuration(page.result.job_span_ns));
  line += dot + fmt::format("{} in {}", Plural(facts.event_count, "event"), Plural(page.run.ranks.size(), "file"));
  WriteWrapped(line, "", "  ", page.options.width, page.out);
}

std::string ScopePhrase(const TextPage& page, const Summary& summary) {
  std::string text = summary.scope == Scope::kOneStep    ? fmt::format("step {}", *page.options.step)
                     : summary.scope == Scope::kStepMean ? "a step"
                                                         : "the window";
  text += fmt::format(", mean of {}", Plural(summary.known_count, page.HasWindows() ? "trace" : "rank"));
  if (summary.mean.basis == Basis::kCpu) text += ", from the CPU's tracks";
  return text;
}

void WriteTimeSplit(const TextPage& page, const Summary& summary) {
  const RankSummary& mean = summary.mean;
  page.Heading("WHERE THE TIME GOES", ScopePhrase(page, summary));
  if (mean.basis == Basis::kNone) {
    page.Paragraph("No rank has device events or CPU operators to tell from.");
    return;
  }
  struct Line {
    const char* name;
    Paint paint;
    double value;
  };
  const Line lines[] = {{"compute", Paint::kCompute, mean.compute_ns},
                        {"exposed communication", Paint::kCommunication, mean.exposed_communication_ns},
                        {"exposed copies", Paint::kMemory, mean.exposed_memory_ns},
                        {"idle", Paint::kIdle, mean.idle_ns}};
  const int bar_width = std::max(0, page.options.width - 42);
  const auto& collectives = page.result.Get<analysis::Collectives>().instances;
  const bool some_unrecorded = std::any_of(collectives.begin(), collectives.end(),
                                           [](const auto& instance) { return instance.some_unrecorded; });
  for (const Line& line : lines) {
    if (line.paint == Paint::kMemory && line.value == 0) continue;
    const double share = mean.span_ns > 0 ? line.value / mean.span_ns : 0;
    const std::string bar = PlainBar(line.paint, line.value, mean.span_ns, bar_width, page.style);
    page.out << fmt::format("  {:<21} {:>8} {:>6}{}{}\n", line.name, Duration(line.value), FormatPercent(share),
                            bar.empty() ? "" : "  ", bar);
    if (line.paint == Paint::kCommunication && mean.wait_ns.value_or(0) > 0 && mean.span_ns > 0) {
      const std::string waiting = fmt::format(
          "    {:<19} {:>8} {:>6}  until the last rank{} arrives", "waiting for others", Duration(*mean.wait_ns),
          FormatPercent(*mean.wait_ns / mean.span_ns), some_unrecorded ? " recorded" : "");
      page.out << Truncate(waiting, page.options.width, page.style.Ellipsis()) << '\n';
    }
  }
  std::string span =
      fmt::format("  {:<21} {:>8}", summary.scope == Scope::kWindow ? "span" : "step time", Duration(mean.span_ns));
  if (mean.communication_ns > 0) {
    span += fmt::format("  {} of communication is hidden under compute",
                        FormatPercent(mean.overlapped_communication_ns / mean.communication_ns));
  }
  page.out << page.style(Paint::kFaint, Truncate(span, page.options.width, page.style.Ellipsis())) << '\n';
}

// A pointer for a rank that holds the others up, a bullet for one of a few that another finding names; a finding about
// most of the ranks marks none of them.
TableCell Mark(const TextPage& page, int32_t rank, size_t rank_count) {
  TableCell mark("");
  for (const Finding& finding : page.result.findings) {
    if (finding.severity == FindingSeverity::kInfo) continue;
    if (page.run.ranks.size() > 1 && finding.ranks.size() * 2 > page.run.ranks.size()) continue;
    if (std::find(finding.ranks.begin(), finding.ranks.end(), rank) == finding.ranks.end()) continue;
    if (finding.id == kStragglerId) return {std::string(page.style.Pointer()), Paint::kBad};
    if (finding.ranks.size() * 2 < rank_count) mark = {std::string(page.style.Bullet()), Paint::kWarn};
  }
  return mark;
}

void AddRank(const TextPage& page, const Summary& summary, const RankSummary& line, double longest, int bar_width,
             bool waits, TextTable* table) {
  const int32_t rank = page.run.ranks[line.rank_index].rank.value;
  const TableCell mark = Mark(page, rank, summary.ranks.size());
  const TableCell label(page.RankLabel(line.rank_index), mark.paint);
  const auto waiting = [&](const std::optional<double>& ns) { return waits ? Duration(ns) : std::string(); };
  if (line.basis == Basis::kNone) {
    const char* why = summary.scope == Scope::kWindow ? "no events" : "no steps";
    table->AddRow({mark, label, why, "", "", waiting(line.wait_ns), "", waiting(line.wait_given_ns), ""});
    return;
  }
  const std::string bar = StackedBar({{Paint::kCompute, line.compute_ns},
                                      {Paint::kCommunication, line.exposed_communication_ns},
                                      {Paint::kMemory, line.exposed_memory_ns},
                                      {Paint::kIdle, line.idle_ns}},
                                     longest, bar_width, page.style);
  const bool given = summary.by_wait_given && line.wait_given_ns.value_or(0) > 0;
  table->AddRow({mark, label, Duration(line.span_ns), Duration(line.compute_ns),
                 Duration(line.exposed_communication_ns), waiting(line.wait_ns), Duration(line.idle_ns),
                 TableCell(waiting(line.wait_given_ns), given ? mark.paint : Paint::kPlain), bar});
}

void WriteRanks(const TextPage& page, const Summary& summary) {
  if (summary.ranks.empty()) return;
  page.Heading("RANKS", summary.ranks.size() == 1 ? ""
                        : summary.by_wait_given   ? "worst first; cost: what the others waited for it, together"
                                                  : "longest first");
  const char* span = summary.scope == Scope::kWindow ? "span" : "step";
  const bool waits =
      std::any_of(summary.ranks.begin(), summary.ranks.end(), [](const RankSummary& line) { return line.wait_ns; });
  TextTable table({{"", Align::kLeft},
                   {"rank"},
                   {span},
                   {"compute"},
                   {"exposed"},
                   {waits ? "waits" : "", Align::kRight, false, 2},
                   {"idle"},
                   {waits ? "cost" : "", Align::kRight, false, 1},
                   {"", Align::kLeft, false, 3}});
  double longest = 0;
  for (const RankSummary& line : summary.ranks) longest = std::max(longest, line.span_ns);
  const int bar_width = std::clamp(page.options.width - 65, 8, 40);
  const size_t count = summary.ranks.size();
  const size_t limit = std::max<size_t>(3, page.options.top);
  const size_t tail = count > limit ? 2 : 0;
  const size_t head = count > limit ? limit - tail : count;
  for (size_t i = 0; i < head; ++i) AddRank(page, summary, summary.ranks[i], longest, bar_width, waits, &table);
  if (tail > 0) {
    table.AddNote(fmt::format("{} {} in between", page.style.Ellipsis(), Plural(count - head - tail, "rank")));
    for (size_t i = count - tail; i < count; ++i)
      AddRank(page, summary, summary.ranks[i], longest, bar_width, waits, &table);
  }
  table.Write(page.style, page.options.width, page.out);
  const auto glyph = [&](Paint paint) { return page.style(paint, BarGlyph(paint, page.style.unicode)); };
  std::string key = fmt::format("  {} compute  {} exposed  {} copies  {} idle", glyph(Paint::kCompute),
                                glyph(Paint::kCommunication), glyph(Paint::kMemory), glyph(Paint::kIdle));
  if (summary.by_wait_given) {
    key += fmt::format("  {} holds others up  {} see findings", page.style(Paint::kBad, page.style.Pointer()),
                       page.style(Paint::kWarn, page.style.Bullet()));
  }
  if (page.options.width >= DisplayWidth(key)) page.out << key << '\n';
}

void WriteMore(const TextPage& page) {
  std::string sections;
  for (const std::string& name : SectionNames()) {
    const std::string pass = PassOfSection(name);
    if (!pass.empty() && !page.result.Has(pass)) continue;
    if (name == "steps" && page.result.Get<analysis::Breakdown>().steps.empty()) continue;
    sections += name + ", ";
  }
  page.out << '\n';
  WriteWrapped(fmt::format("More: --section {}all", sections), "", "  ", page.options.width, page.out, Paint::kFaint,
               page.style);
}

}  // namespace

void WriteFirstScreen(const TextPage& page) {
  if (page.run.operations) {
    WriteOperationScreen(page);
  } else {
    const Summary summary = Summarise(page.run, page.result, page.options);
    WriteJob(page);
    WriteHeadlines(page);
    if (page.result.Has<analysis::Breakdown>()) {
      WriteTimeSplit(page, summary);
      WriteRanks(page, summary);
    }
  }
  WriteFindings(page, 3, true);
  WriteStagesBrief(page);
  WriteLedger(page, true);
  if (page.options.sections.empty()) WriteMore(page);
}

}  // namespace lockstep::report
