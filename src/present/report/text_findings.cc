#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <map>

#include "analysis/finding.h"
#include "present/report/format.h"
#include "present/report/rank_summary.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"
#include "present/report/verdict.h"

namespace lockstep::report {
namespace {

using analysis::Finding;
using analysis::FindingSeverity;

Paint PaintOf(FindingSeverity severity) {
  switch (severity) {
    case FindingSeverity::kCritical: return Paint::kBad;
    case FindingSeverity::kWarning: return Paint::kWarn;
    case FindingSeverity::kInfo: break;
  }
  return Paint::kFaint;
}

void WriteFinding(const TextPage& page, size_t number, const Finding& finding, bool brief) {
  const std::string lead = fmt::format(
      "  {} {}: ", number, page.style(PaintOf(finding.severity), analysis::FindingSeverityName(finding.severity)));
  WriteWrapped(Printable(finding.title), lead, "    ", page.options.width, page.out, Paint::kStrong, page.style);
  // Briefly: one paragraph of gain and first evidence, and the first thing to do.
  const size_t limit = brief ? 1 : SIZE_MAX;
  std::string text = GainWords(finding, page.result.step_count > 0);
  if (!brief) {
    WriteWrapped(text, "    ", "    ", page.options.width, page.out, Paint::kGood, page.style);
    text.clear();
  }
  for (size_t i = 0; i < finding.evidence.size() && i < limit; ++i) {
    text += (text.empty() ? "" : "; ") + Printable(finding.evidence[i].text);
    WriteWrapped(text, "    ", "    ", page.options.width, page.out);
    text.clear();
  }
  WriteWrapped(text, "    ", "    ", page.options.width, page.out);
  for (size_t i = 0; i < finding.advice.size() && i < limit; ++i) {
    WriteWrapped(Printable(finding.advice[i]), fmt::format("    {} ", page.style.Arrow()),
                 page.style.unicode ? "      " : "       ", page.options.width, page.out);
  }
}

struct LedgerGroup {
  const model::LedgerEntry* first = nullptr;
  size_t entry_count = 0;
  uint64_t count = 0;
};

// Entries of one code and severity together: a thousand files may have the same flaw.
std::vector<LedgerGroup> Grouped(const TextPage& page) {
  std::vector<LedgerGroup> groups;
  std::map<std::pair<std::string_view, model::Severity>, size_t> known;
  for (const model::LedgerEntry& entry : page.run.ledger.entries()) {
    if (page.options.rank && entry.rank && *entry.rank != *page.options.rank) continue;
    const auto [at, added] = known.try_emplace({entry.code, entry.severity}, groups.size());
    if (added) groups.push_back({&entry, 0, 0});
    ++groups[at->second].entry_count;
    groups[at->second].count += entry.count;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const LedgerGroup& a, const LedgerGroup& b) { return a.first->severity > b.first->severity; });
  return groups;
}

std::string EntryText(const model::LedgerEntry& entry) {
  std::string text;
  if (!entry.source.empty()) text += Printable(entry.source.substr(entry.source.rfind('/') + 1)) + ": ";
  if (entry.rank && entry.source.empty()) text += fmt::format("rank {}: ", *entry.rank);
  if (entry.byte_offset) text += fmt::format("byte {}: ", FormatCount(*entry.byte_offset));
  return text + Printable(entry.message);
}

Paint PaintOf(model::Severity severity) {
  return severity == model::Severity::kError     ? Paint::kBad
         : severity == model::Severity::kWarning ? Paint::kWarn
                                                 : Paint::kFaint;
}

void WriteEntry(const TextPage& page, const model::LedgerEntry& entry, uint64_t count, size_t entries, bool advice,
                int longest) {
  std::string text = Truncate(EntryText(entry), longest, page.style.Ellipsis());
  if (entries > 1 && count == entries) {
    text += fmt::format(" (and {} more like it)", FormatCount(entries - 1));
  } else if (entries > 1) {
    text += fmt::format(" ({} times in {})", FormatCount(count), Plural(entries, "row"));
  } else if (count > 1) {
    text += fmt::format(" ({} times)", FormatCount(count));
  }
  WriteWrapped(text, fmt::format("  {} ", page.style(PaintOf(entry.severity), model::SeverityName(entry.severity))),
               "    ", page.options.width, page.out);
  if (advice && !entry.advice.empty()) {
    WriteWrapped(Printable(entry.advice), fmt::format("    {} ", page.style.Arrow()), "      ", page.options.width,
                 page.out);
  }
}

}  // namespace

void WriteHeadlines(const TextPage& page) {
  const std::vector<const Finding*> verdict = VerdictFindings(page.result.findings);
  page.out << '\n';
  if (verdict.empty()) WriteWrapped(kNoVerdict, "", "", page.options.width, page.out, Paint::kGood, page.style);
  for (const Finding* finding : verdict) {
    const std::string gain = HeadlineGain(*finding, page.result.step_count > 0);
    WriteWrapped(Printable(finding->title) + (gain.empty() ? "" : fmt::format(" ({})", gain)),
                 fmt::format("{} ", page.style.Pointer()), "  ", page.options.width, page.out,
                 PaintOf(finding->severity), page.style);
  }
}

void WriteFindings(const TextPage& page, size_t limit, bool brief) {
  const std::vector<Finding>& findings = page.result.findings;
  if (findings.empty()) {
    if (!brief) page.Heading("FINDINGS", "none");
    return;
  }
  page.Heading(brief ? "WHAT TO DO FIRST" : "FINDINGS", "largest gain first");
  size_t shown = 0;
  for (; shown < findings.size() && shown < limit; ++shown) WriteFinding(page, shown + 1, findings[shown], brief);
  if (shown < findings.size()) {
    page.Paragraph(fmt::format("{} {} more: --section findings", page.style.Ellipsis(), findings.size() - shown),
                   Paint::kFaint);
  }
}

void WriteLedger(const TextPage& page, bool brief) {
  size_t counts[3] = {0, 0, 0};
  for (const model::LedgerEntry& entry : page.run.ledger.entries()) ++counts[static_cast<size_t>(entry.severity)];
  const std::string note = page.run.ledger.entries().empty()
                               ? "nothing was repaired, skipped or guessed"
                               : fmt::format("{}, {}, {}", Plural(counts[2], "error"), Plural(counts[1], "warning"),
                                             Plural(counts[0], "note"));
  page.Heading(brief ? "DATA" : "LEDGER", note);
  const std::vector<LedgerGroup> groups = Grouped(page);
  if (brief) {
    constexpr size_t kLimit = 3;
    size_t shown = 0;
    size_t notable = 0;
    for (const LedgerGroup& group : groups) {
      if (group.first->severity == model::Severity::kInfo) continue;
      if (++notable > kLimit) continue;
      WriteEntry(page, *group.first, group.count, group.entry_count, false, 2 * page.options.width - 30);
      ++shown;
    }
    if (notable > shown)
      page.Paragraph(fmt::format("{} {} more kinds: --section ledger", page.style.Ellipsis(), notable - shown),
                     Paint::kFaint);
    return;
  }
  for (const LedgerGroup& group : groups) {
    page.out << "  " << page.style(Paint::kStrong, Printable(group.first->code)) << '\n';
    size_t shown = 0;
    for (const model::LedgerEntry& entry : page.run.ledger.entries()) {
      if (entry.code != group.first->code || entry.severity != group.first->severity) continue;
      if (page.options.rank && entry.rank && *entry.rank != *page.options.rank) continue;
      if (shown == page.options.top) {
        page.Paragraph(
            fmt::format("{} {} more (--top {})", page.style.Ellipsis(), group.entry_count - shown, group.entry_count),
            Paint::kFaint);
        break;
      }
      WriteEntry(page, entry, entry.count, 1, shown == 0, INT_MAX);
      ++shown;
    }
  }
}

}  // namespace lockstep::report
