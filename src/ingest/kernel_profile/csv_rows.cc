#include "ingest/kernel_profile/csv_rows.h"

#include <csv.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/ascii.h"
#include "base/text_scan.h"

namespace lockstep::ingest {
namespace {

constexpr size_t kPiece = size_t{1} << 16;
constexpr size_t kLongestNumber = 64;

struct RowReader {
  const std::function<bool(std::vector<std::string>&)>& row;
  std::vector<std::string> cells;
  bool stopped = false;
};

void OnCell(void* text, size_t size, void* data) {
  auto* reader = static_cast<RowReader*>(data);
  reader->cells.emplace_back(text == nullptr ? "" : static_cast<const char*>(text), size);
}

void OnRow(int /*terminator*/, void* data) {
  auto* reader = static_cast<RowReader*>(data);
  if (!reader->stopped && !reader->row(reader->cells)) reader->stopped = true;
  reader->cells.clear();
}

}  // namespace

void ForEachRow(std::string_view text, char separator, const std::function<bool(std::vector<std::string>&)>& row) {
  csv_parser parser;
  if (csv_init(&parser, 0) != 0) return;
  const std::unique_ptr<csv_parser, void (*)(csv_parser*)> release(&parser, csv_free);
  csv_set_delim(&parser, static_cast<unsigned char>(separator));
  if (separator == '\t') csv_set_space_func(&parser, [](unsigned char c) { return c == CSV_SPACE ? 1 : 0; });
  RowReader reader{row, {}, false};
  // In pieces, so that little is parsed in vain after the last row that is wanted.
  for (size_t at = 0; at < text.size() && !reader.stopped; at += kPiece) {
    const std::string_view piece = text.substr(at, kPiece);
    if (csv_parse(&parser, piece.data(), piece.size(), OnCell, OnRow, &reader) != piece.size()) return;
  }
  if (!reader.stopped) csv_fini(&parser, OnCell, OnRow, &reader);
}

std::optional<double> NumberOf(std::string_view cell, const NumberStyle& style) {
  if (cell.empty() || cell.size() > kLongestNumber) return std::nullopt;
  std::string plain;
  for (const char c : cell) {
    if (c == style.decimal) {
      plain += '.';
    } else if (c != ',' && c != '.' && c != '\'' && c != ' ') {
      plain += c;
    }
  }
  if (!plain.empty() && plain.front() == '+') plain.erase(0, 1);
  const auto value = WholeNumber<double>(plain);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

bool HasDecimalComma(std::string_view cell) {
  const size_t comma = cell.rfind(',');
  if (comma == std::string_view::npos || comma == 0 || comma + 1 == cell.size()) return false;
  const std::string_view before = cell.substr(0, comma);
  const std::string_view after = cell.substr(comma + 1);
  if (!std::all_of(after.begin(), after.end(), IsDigit)) return false;
  if (!std::all_of(before.begin(), before.end(), [](char c) { return IsDigit(c) || c == '.' || c == '-'; }))
    return false;
  return after.size() != 3 || before.find('.') != std::string_view::npos || before == "0" || before.size() > 3;
}

}  // namespace lockstep::ingest
