#include "present/report/text_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "present/report/format.h"
#include "present/report/utf8.h"

namespace lockstep::report {

bool TextPage::HasWindows() const {
  return std::any_of(run.ranks.begin(), run.ranks.end(),
                     [](const model::RankTrace& trace) { return trace.window > 0; });
}

std::string TextPage::RankLabel(size_t rank_index) const {
  const model::RankTrace& trace = run.ranks[rank_index];
  return HasWindows() ? fmt::format("{} w{}", trace.rank.value, trace.window) : fmt::format("{}", trace.rank.value);
}

void TextPage::Heading(std::string_view title, std::string_view note) const {
  out << '\n' << style(Paint::kStrong, title);
  if (!note.empty()) {
    const int room = options.width - DisplayWidth(title) - 2;
    if (room > 8) out << "  " << style(Paint::kFaint, Truncate(note, room, style.Ellipsis()));
  }
  out << '\n';
}

void TextPage::Write(TextTable& table, size_t row_count) const {
  if (row_count > options.top) {
    table.AddNote(
        fmt::format("{} {} more (--top {})", style.Ellipsis(), FormatCount(row_count - options.top), row_count));
  }
  table.Write(style, options.width, out);
}

void TextPage::Paragraph(std::string_view text, Paint paint) const {
  WriteWrapped(text, "  ", "  ", options.width, out, paint, style);
}

std::string RankList(const std::vector<int32_t>& ranks, size_t limit) {
  std::string text;
  size_t pieces = 0;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (pieces == limit) return text + fmt::format(" and {} more", FormatCount(ranks.size() - i));
    if (end - i < 3) end = i + 1;
    text += pieces == 0 ? "" : ", ";
    text += end - i == 1 ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[end - 1]);
    ++pieces;
    i = end;
  }
  return text;
}

std::string Plural(uint64_t count, std::string_view singular, std::string_view plural) {
  if (count == 1) return fmt::format("1 {}", singular);
  return plural.empty() ? fmt::format("{} {}s", FormatCount(count), singular)
                        : fmt::format("{} {}", FormatCount(count), plural);
}

}  // namespace lockstep::report
