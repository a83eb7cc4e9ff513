#include "present/report/text_table.h"

#include <algorithm>
#include <iterator>

#include "base/ascii.h"
#include "present/report/kernel_name.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

constexpr int kIndent = 2;

int WidthOf(const TableCell& cell) { return DisplayWidth(cell.text); }

std::string Fit(const TableCell& cell, const TableColumn& column, int width, const Style& style) {
  if (WidthOf(cell) <= width) return cell.text;
  if (cell.text.find('\x1b') != std::string::npos) return {};  // A bar is whole or absent.
  if (column.shorten == Shorten::kName) return ShortenName(cell.text, width, style.unicode);
  return Truncate(cell.text, width, style.Ellipsis());
}

void TrimAndWrite(std::string line, std::ostream& out) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  out << line << '\n';
}

// Which columns are shown, how wide each is, and the blanks between them, so that the sum stays within the width.
struct Layout {
  std::vector<int> widths;
  std::vector<bool> shown;
  int gap = 2;
};

int NeededWidth(const std::vector<TableColumn>& columns, const Layout& layout, int gap) {
  int needed = kIndent - gap;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (!layout.shown[c]) continue;
    needed += gap + (columns[c].flexible ? std::min(layout.widths[c], columns[c].minimum) : layout.widths[c]);
  }
  return needed;
}

// The column that goes next when room is short; the size when none may go.
size_t NextToDrop(const std::vector<TableColumn>& columns, const Layout& layout) {
  size_t next = columns.size();
  for (size_t c = 0; c < columns.size(); ++c) {
    if (!layout.shown[c] || columns[c].drop == 0) continue;
    if (next == columns.size() || columns[c].drop > columns[next].drop) next = c;
  }
  return next;
}

Layout Arrange(const std::vector<TableColumn>& columns, const std::vector<std::vector<TableCell>>& rows, int width) {
  Layout layout{std::vector<int>(columns.size(), 0), std::vector<bool>(columns.size(), true), 2};
  for (size_t c = 0; c < columns.size(); ++c) {
    layout.widths[c] = DisplayWidth(columns[c].header);
    for (const auto& row : rows) {
      if (c < row.size()) layout.widths[c] = std::max(layout.widths[c], WidthOf(row[c]));
    }
  }
  for (size_t c = 0; c < columns.size(); ++c) layout.shown[c] = layout.widths[c] > 0;
  for (const int gap : {2, 1}) {
    while (NeededWidth(columns, layout, gap) > width) {
      const size_t next = NextToDrop(columns, layout);
      if (next == columns.size() || (gap == 2 && columns[next].drop < 2)) break;
      layout.shown[next] = false;
    }
  }
  layout.gap = NeededWidth(columns, layout, 2) <= width ? 2 : 1;
  const int spare = width - NeededWidth(columns, layout, layout.gap);
  for (size_t c = 0; c < columns.size(); ++c) {
    if (!columns[c].flexible) continue;
    layout.widths[c] = std::min(layout.widths[c], std::max(0, spare) + std::min(layout.widths[c], columns[c].minimum));
  }
  return layout;
}

}  // namespace

void TextTable::Write(const Style& style, int width, std::ostream& out) const {
  const Layout layout = Arrange(columns_, rows_, width);
  const auto write_line = [&](const std::vector<TableCell>& cells, bool header) {
    std::string line(kIndent, ' ');
    int used = kIndent;
    bool first = true;
    for (size_t c = 0; c < columns_.size() && c < cells.size(); ++c) {
      if (!layout.shown[c]) continue;
      const int gap = first ? 0 : layout.gap;
      const int room = std::min(layout.widths[c], width - used - gap);
      if (room <= 0) break;
      const bool fits = WidthOf(cells[c]) <= room;
      const std::string text = fits ? cells[c].text : Fit(cells[c], columns_[c], room, style);
      const int text_width = fits ? WidthOf(cells[c]) : DisplayWidth(text);
      const std::string padding(static_cast<size_t>(std::max(0, room - text_width)), ' ');
      const std::string painted = style(header ? Paint::kFaint : cells[c].paint, text);
      line.append(static_cast<size_t>(gap), ' ');
      first = false;
      line += columns_[c].align == Align::kRight ? padding + painted : painted + padding;
      used += room + gap;
    }
    TrimAndWrite(std::move(line), out);
  };

  std::vector<TableCell> headers;
  for (const TableColumn& column : columns_) headers.emplace_back(column.header);
  if (std::any_of(columns_.begin(), columns_.end(), [](const TableColumn& c) { return !c.header.empty(); })) {
    write_line(headers, true);
  }
  size_t note = 0;
  for (size_t r = 0; r <= rows_.size(); ++r) {
    for (; note < notes_.size() && notes_[note].before_row == r; ++note) {
      out << std::string(kIndent, ' ')
          << style(Paint::kFaint, Truncate(notes_[note].text, width - kIndent, style.Ellipsis())) << '\n';
    }
    if (r < rows_.size()) write_line(rows_[r], false);
  }
}

namespace {

// A number and the unit behind it stay on one line.
bool IsUnit(std::string_view word) {
  while (!word.empty() && (word.back() == ',' || word.back() == ';' || word.back() == '.' || word.back() == ')'))
    word.remove_suffix(1);
  constexpr std::string_view kUnits[] = {"ns",  "us",  "ms",  "s",   "min", "h",    "d",    "%",    "B",
                                         "KiB", "MiB", "GiB", "TiB", "B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  return std::find(std::begin(kUnits), std::end(kUnits), word) != std::end(kUnits);
}

bool EndsInDigit(std::string_view word) { return !word.empty() && IsDigit(word.back()); }

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t start = text.find_first_not_of(' ', at);
    if (start == std::string_view::npos) break;
    const size_t end = std::min(text.find(' ', start), text.size());
    const std::string_view word = text.substr(start, end - start);
    if (!words.empty() && IsUnit(word) && EndsInDigit(words.back())) {
      words.back() += ' ';
      words.back() += word;
    } else {
      words.emplace_back(word);
    }
    at = end;
  }
  return words;
}

}  // namespace

void WriteWrapped(std::string_view text, std::string_view first, std::string_view next, int width, std::ostream& out,
                  Paint paint, const Style& style) {
  std::string_view lead = first;
  std::string line;
  const auto flush = [&] {
    TrimAndWrite(std::string(lead) + style(paint, line), out);
    line.clear();
    lead = next;
  };
  for (const std::string& word : WordsOf(text)) {
    if (!line.empty() && DisplayWidth(lead) + DisplayWidth(line) + 1 + DisplayWidth(word) > width) flush();
    if (!line.empty()) line += ' ';
    line += Truncate(word, std::max(1, width - DisplayWidth(lead)), style.Ellipsis());
  }
  if (!line.empty()) flush();
}

}  // namespace lockstep::report
