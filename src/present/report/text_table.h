#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "present/report/style.h"

namespace lockstep::report {

enum class Align : uint8_t { kLeft, kRight };

/// How a cell that does not fit is cut.
enum class Shorten : uint8_t {
  kEnd,   ///< Its end goes.
  kName,  ///< ShortenName (kernel_name.h).
};

struct TableColumn {
  std::string header;
  Align align = Align::kRight;
  bool flexible = false;  ///< Takes what the others leave; its cells are shortened. At most one per table.
  int drop = 0;           ///< Left out in a narrow terminal: highest first; 0 = never.
  Shorten shorten = Shorten::kEnd;
  int minimum = 12;  ///< Of a flexible column: others are left out before it gets narrower than this.
};

struct TableCell {
  TableCell(std::string content, Paint how = Paint::kPlain)
      : text(std::move(content)), paint(how) {}      // NOLINT(google-explicit-constructor)
  TableCell(const char* content) : text(content) {}  // NOLINT(google-explicit-constructor)
  std::string text;                                  ///< Printable; may hold colour of ours already (bars).
  Paint paint = Paint::kPlain;
};

/// Rows in columns as narrow as their content, two spaces between (one where room is short); the whole indented by two.
/// No line is wider than `width` and none ends in blanks.
class TextTable {
 public:
  explicit TextTable(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}
  void AddRow(std::vector<TableCell> cells) { rows_.push_back(std::move(cells)); }
  /// A line between rows that is no row ("992 ranks in between").
  void AddNote(std::string text) { notes_.push_back({rows_.size(), std::move(text)}); }
  bool empty() const { return rows_.empty(); }
  void Write(const Style& style, int width, std::ostream& out) const;

 private:
  struct Note {
    size_t before_row;
    std::string text;
  };
  std::vector<TableColumn> columns_;
  std::vector<std::vector<TableCell>> rows_;
  std::vector<Note> notes_;
};

/// Paragraph in lines of at most `width` columns; the first begins with `first`, the others with `next` (both counted).
void WriteWrapped(std::string_view text, std::string_view first, std::string_view next, int width, std::ostream& out,
                  Paint paint = Paint::kPlain, const Style& style = {});

}  // namespace lockstep::report
