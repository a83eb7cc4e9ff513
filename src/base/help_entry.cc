#include "base/help_entry.h"

#include <sstream>

namespace lockstep {

std::string HelpEntry(const std::string& left, const std::string& description) {
  constexpr size_t kColumn = 30;
  constexpr size_t kWidth = 80;
  std::string text = "  " + left;
  text += text.size() + 2 > kColumn ? "\n" + std::string(kColumn, ' ') : std::string(kColumn - text.size(), ' ');
  size_t used = kColumn;
  std::istringstream words(description);
  for (std::string word; words >> word;) {
    if (used > kColumn && used + 1 + word.size() > kWidth) {
      text += "\n" + std::string(kColumn, ' ');
      used = kColumn;
    }
    if (used > kColumn) {
      text += ' ';
      ++used;
    }
    text += word;
    used += word.size();
  }
  return text + "\n";
}

}  // namespace lockstep
