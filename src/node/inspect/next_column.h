#pragma once

#include <algorithm>
#include <string_view>

namespace lockstep::inspect {

/// Takes the next column off a line of a table of /proc, whose columns spaces part; empty at its end.
inline std::string_view NextColumn(std::string_view* line) {
  line->remove_prefix(std::min(line->find_first_not_of(' '), line->size()));
  const std::string_view column = line->substr(0, line->find(' '));
  line->remove_prefix(column.size());
  return column;
}

}  // namespace lockstep::inspect
