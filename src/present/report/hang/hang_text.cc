#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "present/report/format.h"
#include "present/report/hang/hang_report.h"
#include "present/report/hang/hang_text_parts.h"
#include "present/report/text_page.h"
#include "present/report/text_table.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using hang::Diagnosis;
using hang::RankRole;
using hang::Verdict;
using hang::VerdictKind;

constexpr size_t kFewRows = 8;

/// "skipped_collective" as words.
std::string KindWords(VerdictKind kind) {
  std::string words = hang::VerdictKindName(kind);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

bool NamesCulprits(const Verdict& verdict) { return verdict.confidence >= 0.5 && !verdict.culprit_ranks.empty(); }

void WriteVerdict(const HangTextPage& page) {
  const Verdict& verdict = page.diagnosis.verdict;
  std::string head = KindWords(verdict.kind);
  if (!verdict.culprit_ranks.empty()) {
    head += fmt::format(": {}{}", NamesCulprits(verdict) ? "" : "perhaps ", RanksText(verdict.culprit_ranks));
  }
  head += fmt::format(", {:.0f} % sure", verdict.confidence * 100);
  const Paint paint = verdict.kind == VerdictKind::kHealthy       ? Paint::kGood
                      : verdict.kind == VerdictKind::kUndecidable ? Paint::kWarn
                                                                  : Paint::kBad;
  WriteWrapped(Printable(head), std::string(page.style.Pointer()) + " ", "  ", page.options.columns, page.out, paint,
               page.style);
  WriteWrapped(Printable(verdict.explanation), "  ", "  ", page.options.columns, page.out, Paint::kStrong, page.style);
}

/// Ranks that do the same, in one line.
void WriteRanks(const HangTextPage& page) {
  const Diagnosis& diagnosis = page.diagnosis;
  const bool roles_only = !page.options.all;
  struct Row {
    std::vector<int32_t> ranks;
    std::string host;
    std::string alive;
  };
  std::map<std::tuple<RankRole, std::string, std::string>, Row> rows;
  for (const hang::RankState& rank : diagnosis.ranks) {
    if (roles_only && rank.role == RankRole::kUninvolved && diagnosis.verdict.kind != VerdictKind::kHealthy) continue;
    const std::string where = rank.host.empty() ? ""
                              : rank.pid > 0    ? fmt::format("{} pid {}", rank.host, rank.pid)
                                                : rank.host;
    // Culprits stand alone with their process; the others by what they do.
    const bool alone = page.options.all || rank.role == RankRole::kCulprit;
    Row& row = rows[{rank.role, rank.doing, alone ? fmt::format("{:010}", rank.rank) : std::string()}];
    row.ranks.push_back(rank.rank);
    row.host = alone ? where : std::string();
    row.alive = rank.liveness == evidence::Liveness::kGone ? "gone" : "";
  }
  if (rows.empty()) return;
  page.Heading("RANKS", diagnosis.world_size ? fmt::format("{} in the job", *diagnosis.world_size) : "");
  TextTable table({{"role", Align::kLeft},
                   {"ranks", Align::kLeft},
                   {"doing", Align::kLeft, true},
                   {"process", Align::kLeft, false, 1}});
  size_t written = 0;
  for (const auto& [key, row] : rows) {
    if (!page.options.all && written == kFewRows) {
      table.AddNote(fmt::format("{} more (--all)", rows.size() - written));
      break;
    }
    const RankRole role = std::get<0>(key);
    std::string doing = Printable(std::get<1>(key));
    if (!row.alive.empty() && doing.empty()) doing = row.alive;
    const bool named = role == RankRole::kCulprit;
    table.AddRow({{hang::RankRoleName(role), named ? Paint::kBad : Paint::kPlain},
                  {RankList(row.ranks, 6), named ? Paint::kBad : Paint::kPlain},
                  {doing.empty() ? "not known" : doing, doing.empty() ? Paint::kFaint : Paint::kPlain},
                  {Printable(row.host), Paint::kFaint}});
    ++written;
  }
  table.Write(page.style, page.options.columns, page.out);
}

std::string SourceWords(std::string source) {
  std::replace(source.begin(), source.end(), '_', ' ');
  return source;
}

/// The folder that all files lie in, with its slash: it is not repeated behind each fact.
size_t CommonFolder(const std::vector<hang::EvidenceItem>& items) {
  std::string_view common;
  bool first = true;
  for (const hang::EvidenceItem& item : items) {
    if (item.file.empty()) continue;
    const std::string_view file = item.file;
    if (first) common = file;
    first = false;
    const size_t length = std::min(common.size(), file.size());
    const auto parting = std::mismatch(common.begin(), common.begin() + length, file.begin());
    common = common.substr(0, static_cast<size_t>(parting.first - common.begin()));
  }
  return common.rfind('/') + 1;
}

void WriteEvidence(const HangTextPage& page, bool contradicting) {
  const size_t common = CommonFolder(page.diagnosis.evidence);
  std::vector<const hang::EvidenceItem*> items;
  for (const hang::EvidenceItem& item : page.diagnosis.evidence) {
    if (item.contradicts == contradicting) items.push_back(&item);
  }
  if (items.empty()) return;
  contradicting ? page.Heading("SPEAKS AGAINST IT") : page.Heading("EVIDENCE");
  const size_t limit = page.options.all || contradicting ? items.size() : 12;
  for (size_t i = 0; i < items.size() && i < limit; ++i) {
    std::string source = SourceWords(items[i]->source);
    if (!items[i]->file.empty()) source += ", " + items[i]->file.substr(common);
    page.Item(page.style.Bullet(), fmt::format("{} ({})", items[i]->fact, source),
              contradicting ? Paint::kWarn : Paint::kPlain);
  }
  if (items.size() > limit) page.Item(" ", fmt::format("{} more (--all)", items.size() - limit), Paint::kFaint);
}

void WriteContext(const HangTextPage& page) {
  if (page.diagnosis.context.empty()) return;
  page.Heading("BESIDES", "what follows from it, or would explain it less well");
  const size_t limit = page.options.all ? page.diagnosis.context.size() : 4;
  for (size_t i = 0; i < page.diagnosis.context.size() && i < limit; ++i) {
    const Verdict& verdict = page.diagnosis.context[i];
    page.Item(page.style.Bullet(),
              fmt::format("{} ({}, {:.0f} %)", verdict.explanation, KindWords(verdict.kind), verdict.confidence * 100));
  }
}

/// What is missing alike on several ranks is one line.
void WriteMissing(const HangTextPage& page) {
  const std::vector<evidence::MissingEvidence>& missing = page.diagnosis.missing;
  if (missing.empty()) return;
  page.Heading("MISSING", "and how to have it next time");
  struct Row {
    const evidence::MissingEvidence* first;
    std::vector<int32_t> ranks;
  };
  std::vector<Row> rows;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, size_t> places;
  for (const evidence::MissingEvidence& item : missing) {
    const auto [place, is_new] =
        places.try_emplace({item.what, item.reason, item.remedy, item.rank ? "" : item.host}, rows.size());
    if (is_new) rows.push_back({&item, {}});
    if (item.rank) rows[place->second].ranks.push_back(*item.rank);
  }
  const size_t limit = page.options.all ? rows.size() : kFewRows;
  for (size_t i = 0; i < rows.size() && i < limit; ++i) {
    Row& row = rows[i];
    std::sort(row.ranks.begin(), row.ranks.end());
    std::string text = SourceWords(row.first->what);
    if (!row.ranks.empty()) text += " of " + RanksText(row.ranks);
    if (row.ranks.empty() && !row.first->host.empty()) text += " of " + row.first->host;
    if (!row.first->reason.empty()) text += ": " + row.first->reason;
    if (!row.first->remedy.empty()) text += "; " + row.first->remedy;
    page.Item(page.style.Bullet(), text);
  }
  if (rows.size() > limit) page.Item(" ", fmt::format("{} more (--all)", rows.size() - limit), Paint::kFaint);
}

void WriteProblems(const HangTextPage& page) {
  const auto& problems = page.diagnosis.problems;
  if (problems.empty()) return;
  page.Heading("FILES", "that could not be used, or only in part");
  const size_t limit = page.options.all ? problems.size() : kFewRows;
  for (size_t i = 0; i < problems.size() && i < limit; ++i) {
    page.Item(page.style.Bullet(), fmt::format("{}: {}", problems[i].file, problems[i].message),
              problems[i].is_note ? Paint::kFaint : Paint::kWarn);
  }
  if (problems.size() > limit) page.Item(" ", fmt::format("{} more (--all)", problems.size() - limit), Paint::kFaint);
}

void WriteAdvice(const HangTextPage& page) {
  const std::vector<std::string>& advice = page.diagnosis.verdict.advice;
  if (advice.empty()) return;
  page.Heading("TRY");
  for (size_t i = 0; i < advice.size(); ++i) page.Item(fmt::format("{}.", i + 1), advice[i]);
}

}  // namespace

std::string RanksText(const std::vector<int32_t>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", RankList(ranks, 12));
}

void HangTextPage::Heading(std::string_view title, std::string_view note) const {
  out << '\n' << style(Paint::kStrong, title);
  const int room = options.columns - DisplayWidth(title) - 2;
  if (!note.empty() && room > 8) out << "  " << style(Paint::kFaint, Truncate(note, room, style.Ellipsis()));
  out << '\n';
}

void HangTextPage::Item(std::string_view mark, std::string_view text, Paint paint) const {
  const std::string first = fmt::format("  {} ", mark);
  WriteWrapped(Printable(text), first, std::string(static_cast<size_t>(DisplayWidth(first)), ' '), options.columns, out,
               paint, style);
}

void WriteHangText(const Diagnosis& diagnosis, const HangTextOptions& options, std::ostream& out) {
  const HangTextPage page{diagnosis, options, Style{options.colour, options.unicode}, out};
  WriteVerdict(page);
  WriteRanks(page);
  WriteCycle(page);
  WriteSites(page);
  WriteAdvice(page);
  WriteEvidence(page, false);
  WriteEvidence(page, true);
  WriteContext(page);
  WriteGroups(page);
  WriteStacks(page);
  WriteMissing(page);
  WriteProblems(page);
  out.flush();
}

}  // namespace lockstep::report
