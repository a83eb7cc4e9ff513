#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::ingest {

/// Calls `row` with the cells of each line of a table whose cells may be quoted, and hold separators, quotes (doubled)
/// and line breaks; empty lines are passed over. Blanks around cells go. Ends early when `row` returns false.
void ForEachRow(std::string_view text, char separator, const std::function<bool(std::vector<std::string>& cells)>& row);

/// How a file writes numbers: "4,963,609.19" or, in other locales, "4.963.609,19".
struct NumberStyle {
  char decimal = '.';
};

/// The number in a cell, whatever groups its digits; absent for empty cells, "n/a" and other text, and where it is not
/// finite.
std::optional<double> NumberOf(std::string_view cell, const NumberStyle& style);

/// Whether the cell can only be read with a comma before decimals: "61,84", "1.234,5". "12,319" does not tell.
bool HasDecimalComma(std::string_view cell);

}  // namespace lockstep::ingest
