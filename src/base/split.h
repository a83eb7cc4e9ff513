#pragma once

#include <string_view>
#include <vector>

namespace lockstep {

/// What stands between the characters of `separators`; none of it is empty. Parts of `text`.
inline std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separators = " \t") {
  std::vector<std::string_view> words;
  for (size_t at = text.find_first_not_of(separators); at != std::string_view::npos;) {
    const size_t end = text.find_first_of(separators, at);
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(separators, end);
  }
  return words;
}

/// What stands before the next `separator`, which is taken off too; all of it where there is none.
inline std::string_view TakePart(std::string_view* text, char separator) {
  const std::string_view part = text->substr(0, text->find(separator));
  text->remove_prefix(part.size() < text->size() ? part.size() + 1 : part.size());
  return part;
}

/// Lines without their ends ("\n" or "\r\n"); the text behind the last end is one too, unless empty.
inline std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace lockstep
