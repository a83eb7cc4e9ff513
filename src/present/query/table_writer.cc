#include <fmt/format.h>

#include <algorithm>

#include "base/cell.h"
#include "present/query/row_writer.h"
#include "present/report/utf8.h"

namespace lockstep::query {
namespace {

constexpr size_t kRowsHeldBack = 1000;
constexpr int kNarrowest = 8;  // a text column is not made narrower than this
constexpr int kGap = 2;        // blanks between columns
constexpr const char* kNull = "NULL";

struct ShownCell {
  std::string text;
  bool is_null = false;
  bool is_number = false;
};

ShownCell Shown(const Cell& cell) {
  struct Visitor {
    ShownCell operator()(std::monostate) const { return {kNull, true, false}; }
    ShownCell operator()(bool value) const { return {value ? "1" : "0", false, true}; }
    ShownCell operator()(int64_t value) const { return {fmt::format("{}", value), false, true}; }
    ShownCell operator()(uint64_t value) const { return {fmt::format("{}", value), false, true}; }
    ShownCell operator()(double value) const {
      // Seventeen digits are of no use in a table; --format csv and json have them.
      return {fmt::format("{:.6g}", value).find('e') == std::string::npos ? fmt::format("{:.6g}", value)
                                                                          : fmt::format("{:.1f}", value),
              false, true};
    }
    ShownCell operator()(const std::string& value) const { return {report::Printable(value), false, false}; }
    ShownCell operator()(const NestedCell& value) const { return {value.Text(), false, false}; }
  };
  return std::visit(Visitor{}, cell);
}

class TableWriter : public RowWriter {
 public:
  TableWriter(std::ostream& out, const TableStyle& style) : out_(out), style_(style) {}

  void Begin(const std::vector<std::string>& columns) override {
    for (const std::string& name : columns) headers_.push_back(report::Printable(name));
  }

  void Row(const std::vector<Cell>& cells) override {
    std::vector<ShownCell> row;
    row.reserve(cells.size());
    for (const Cell& cell : cells) row.push_back(Shown(cell));
    if (laid_out_) return Write(row);
    held_.push_back(std::move(row));
    if (held_.size() >= kRowsHeldBack) WriteHeld();
  }

  void End() override {
    if (!laid_out_) WriteHeld();
    out_.flush();
  }

  bool closed() const override { return !out_.good(); }

 private:
  void WriteHeld() {
    LayOut();
    if (!blocks_) WriteHeader();
    for (const auto& row : held_) Write(row);
    held_.clear();
  }

  void LayOut() {
    laid_out_ = true;
    const size_t count = headers_.size();
    widths_.assign(count, 0);
    numeric_.assign(count, true);
    for (size_t i = 0; i < count; ++i) {
      widths_[i] = report::DisplayWidth(headers_[i]);
      bool any = false;
      for (const auto& row : held_) {
        widths_[i] = std::max(widths_[i], report::DisplayWidth(row[i].text));
        if (row[i].is_null) continue;
        any = true;
        numeric_[i] = numeric_[i] && row[i].is_number;
      }
      numeric_[i] = numeric_[i] && any;
    }
    if (style_.width > 0) Shrink();
  }

  int TotalWidth() const {
    int total = 0;
    for (const int width : widths_) total += width + kGap;
    return total - kGap;
  }

  // Takes columns off the widest text column until the rest fits; numbers are never cut.
  void Shrink() {
    while (TotalWidth() > style_.width) {
      size_t widest = widths_.size();
      int second = kNarrowest;
      for (size_t i = 0; i < widths_.size(); ++i) {
        if (numeric_[i] || widths_[i] <= kNarrowest) continue;
        if (widest == widths_.size() || widths_[i] > widths_[widest]) {
          if (widest != widths_.size()) second = std::max(second, widths_[widest]);
          widest = i;
        } else {
          second = std::max(second, widths_[i]);
        }
      }
      if (widest == widths_.size()) {
        blocks_ = true;
        return;
      }
      const int excess = TotalWidth() - style_.width;
      const int down_to =
          std::max({second == widths_[widest] ? second - 1 : second, widths_[widest] - excess, kNarrowest});
      widths_[widest] = std::min(down_to, widths_[widest] - 1);
    }
  }

  void WriteHeader() {
    std::string line;
    for (size_t i = 0; i < headers_.size(); ++i) Append(headers_[i], i, numeric_[i], i + 1 == headers_.size(), &line);
    out_ << Bold(line) << '\n';
    line.clear();
    for (size_t i = 0; i < headers_.size(); ++i) {
      if (i > 0) line.append(kGap, ' ');
      for (int c = 0; c < widths_[i]; ++c) line += style_.unicode ? "─" : "-";
    }
    out_ << line << '\n';
  }

  void Write(const std::vector<ShownCell>& row) {
    if (blocks_) return WriteBlock(row);
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string cell;
      Append(row[i].text, i, numeric_[i], i + 1 == row.size(), &cell);
      line += row[i].is_null ? Dim(cell) : cell;
    }
    out_ << line << '\n';
  }

  // Blanks behind the last column are left out.
  void Append(const std::string& text, size_t column, bool right, bool last, std::string* line) const {
    if (column > 0) line->append(kGap, ' ');
    const std::string shown = report::Truncate(text, std::max(widths_[column], right ? INT32_MAX : 0), Ellipsis());
    const int missing = std::max(0, widths_[column] - report::DisplayWidth(shown));
    if (right) line->append(static_cast<size_t>(missing), ' ');
    *line += shown;
    if (!right && !last) line->append(static_cast<size_t>(missing), ' ');
  }

  void WriteBlock(const std::vector<ShownCell>& row) {
    int label = 0;
    for (const std::string& header : headers_) label = std::max(label, report::DisplayWidth(header));
    if (++block_number_ > 1) out_ << '\n';
    for (size_t i = 0; i < row.size(); ++i) {
      const int padding = label - report::DisplayWidth(headers_[i]);
      const int room = std::max(kNarrowest, style_.width - label - kGap);
      const std::string text = report::Truncate(row[i].text, row[i].is_number ? INT32_MAX : room, Ellipsis());
      out_ << Bold(headers_[i]) << std::string(static_cast<size_t>(padding + kGap), ' ')
           << (row[i].is_null ? Dim(text) : text) << '\n';
    }
  }

  std::string_view Ellipsis() const { return style_.unicode ? "…" : "..."; }
  std::string Bold(const std::string& text) const { return style_.colour ? "\x1b[1m" + text + "\x1b[0m" : text; }
  std::string Dim(const std::string& text) const { return style_.colour ? "\x1b[2m" + text + "\x1b[0m" : text; }

  std::ostream& out_;
  const TableStyle style_;
  std::vector<std::string> headers_;
  std::vector<std::vector<ShownCell>> held_;
  bool laid_out_ = false;
  std::vector<int> widths_;
  std::vector<bool> numeric_;
  bool blocks_ = false;
  uint64_t block_number_ = 0;
};

}  // namespace

std::unique_ptr<RowWriter> MakeTableWriter(std::ostream& out, const TableStyle& style) {
  return std::make_unique<TableWriter>(out, style);
}

}  // namespace lockstep::query
