#include "model/log_line/level.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "base/ascii.h"

namespace lockstep::logs {
namespace {

constexpr std::string_view kLetters = "TDIWEF";
constexpr std::array<const char*, 6> kNames = {"trace", "debug", "info", "warning", "error", "fatal"};
constexpr std::array<std::pair<std::string_view, Level>, 9> kLevelWords = {{{"ERROR", Level::kError},
                                                                            {"WARNING", Level::kWarning},
                                                                            {"INFO", Level::kInfo},
                                                                            {"CRITICAL", Level::kFatal},
                                                                            {"FATAL", Level::kFatal},
                                                                            {"WARN", Level::kWarning},
                                                                            {"DEBUG", Level::kDebug},
                                                                            {"TRACE", Level::kTrace},
                                                                            {"SEVERE", Level::kError}}};
constexpr size_t kHeadBytes = 96;

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsWordPart(char c) { return IsUpper(c) || IsDigit(c) || (c >= 'a' && c <= 'z') || c == '_'; }

/// "E1121 03:35:23" where it begins, or behind "[" and launchers' "[rank3]:[".
std::optional<Level> GlogLevel(std::string_view head) {
  for (size_t at = 0; at + 14 <= head.size(); ++at) {
    if (at > 0 && head[at - 1] != '[' && head[at - 1] != ' ' && head[at - 1] != ':') continue;
    if (head[at] != 'I' && head[at] != 'W' && head[at] != 'E' && head[at] != 'F') continue;
    if (!std::all_of(head.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                     head.begin() + static_cast<std::ptrdiff_t>(at) + 5, IsDigit)) {
      continue;
    }
    if (head[at + 5] == ' ' && IsDigit(head[at + 6]) && head[at + 8] == ':' && head[at + 11] == ':') {
      return LevelOfLetter(head[at]);
    }
  }
  return std::nullopt;
}

/// The first of the words in capitals that is a level's name.
std::optional<Level> WordLevel(std::string_view head) {
  for (size_t at = 0; at < head.size();) {
    if (!IsUpper(head[at]) || (at > 0 && IsWordPart(head[at - 1]))) {
      ++at;
      continue;
    }
    size_t end = at + 1;
    while (end < head.size() && IsWordPart(head[end])) ++end;
    const std::string_view word = head.substr(at, end - at);
    for (const auto& [name, level] : kLevelWords) {
      if (word == name) return level;
    }
    at = end;
  }
  return std::nullopt;
}

bool IsTracebackHead(std::string_view text) {
  return text.find("Traceback (most recent call last):") != std::string_view::npos;
}

bool IsCrash(std::string_view text) {
  constexpr std::array<std::string_view, 5> kMarks = {"terminate called ", "Segmentation fault", "Fatal Python error",
                                                      "Aborted (core dumped)", "Killed"};
  return std::any_of(kMarks.begin(), kMarks.end(), [&](std::string_view mark) { return text.starts_with(mark); });
}

/// Where the text of a traceback begins behind PyTorch's "[rank3]: ".
std::string_view WithoutRank(std::string_view text) {
  if (!text.starts_with("[rank")) return text;
  const size_t end = text.find("]: ");
  return end == std::string_view::npos || end > 16 ? text : text.substr(end + 3);
}

}  // namespace

char LevelLetter(Level level) { return kLetters[static_cast<size_t>(level)]; }

const char* LevelName(Level level) { return kNames[static_cast<size_t>(level)]; }

std::optional<Level> LevelOfLetter(char letter) {
  const size_t at = kLetters.find(letter);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<Level>(at);
}

std::optional<Level> LevelOfName(std::string_view name) {
  if (name.size() > 8) return std::nullopt;
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  for (const auto& [word, level] : kLevelWords) {
    if (upper == word) return level;
  }
  return std::nullopt;
}

std::optional<Level> ReadLevel(std::string_view text) {
  if (IsCrash(text)) return Level::kFatal;
  const std::string_view head = text.substr(0, kHeadBytes);
  if (const auto level = GlogLevel(head)) return level;
  if (IsTracebackHead(text)) return Level::kError;
  return WordLevel(head);
}

Level LevelReader::Next(std::string_view text) {
  const std::string_view plain = WithoutRank(text);
  if (IsTracebackHead(plain)) {
    in_traceback_ = true;
    return Level::kError;
  }
  if (in_traceback_) {
    // Its lines are indented; the first that is not is what was raised.
    in_traceback_ = plain.empty() || plain.front() == ' ' || plain.front() == '\t';
    return Level::kError;
  }
  return ReadLevel(text).value_or(Level::kInfo);
}

}  // namespace lockstep::logs
