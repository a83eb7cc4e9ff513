#include "ingest/nccl/log_line.h"

#include <array>
#include <utility>

#include "base/ascii.h"
#include "base/text_scan.h"
#include "base/trim.h"
#include "ingest/rank_log/line_prefix.h"

namespace lockstep::ingest {
namespace {

constexpr std::array<std::pair<std::string_view, NcclLevel>, 6> kLevels = {{{"INFO", NcclLevel::kInfo},
                                                                            {"WARN", NcclLevel::kWarn},
                                                                            {"TRACE", NcclLevel::kTrace},
                                                                            {"CALL", NcclLevel::kCall},
                                                                            {"ABORT", NcclLevel::kAbort},
                                                                            {"VERSION", NcclLevel::kVersion}}};

bool IsHostCharacter(char c) { return IsAlphanumeric(c) || c == '.' || c == '-' || c == '_'; }

/// Removes ":<digits>" from the end of `text`; false when it does not end so.
bool TakeNumberBehindColon(std::string_view& text, int64_t& number) {
  size_t begin = text.size();
  while (begin > 0 && IsDigit(text[begin - 1])) --begin;
  if (begin == 0 || text[begin - 1] != ':' || !ReadNumber(text.substr(begin), &number)) return false;
  text.remove_suffix(text.size() - begin + 1);
  return true;
}

/// Reads "host:pid:tid", the last word of `text`, into `line`, with what stands before it as the prefix.
bool ReadIdentity(std::string_view text, NcclLogLine& line) {
  if (!TakeNumberBehindColon(text, line.tid) || !TakeNumberBehindColon(text, line.pid)) return false;
  size_t begin = text.size();
  while (begin > 0 && IsHostCharacter(text[begin - 1])) --begin;
  line.host = text.substr(begin);
  line.prefix = text.substr(0, begin);
  return !line.host.empty();
}

/// Reads what stands left of " NCCL LEVEL": "... host:pid:tid [0] misc/x.cc:27 (f)". The identity is the rightmost
/// word of its form.
bool ReadLeft(std::string_view left, NcclLogLine& line) {
  size_t end = left.size();
  while (end > 0) {
    while (end > 0 && left[end - 1] == ' ') --end;
    size_t begin = end;
    while (begin > 0 && left[begin - 1] != ' ') --begin;
    if (begin == end) return false;
    if (ReadIdentity(left.substr(0, end), line)) {
      std::string_view rest = Trimmed(left.substr(end));
      if (!rest.empty() && rest.front() == '[') {
        const size_t close = rest.find(']');
        if (close == std::string_view::npos || !ReadNumber(rest.substr(1, close - 1), &line.device)) line.device = -1;
        if (close != std::string_view::npos) rest = Trimmed(rest.substr(close + 1));
      }
      line.source = rest;
      return true;
    }
    end = begin;
  }
  return false;
}

}  // namespace

std::optional<NcclLogLine> ParseNcclLogLine(std::string_view line) {
  constexpr std::string_view kMark = "NCCL ";
  for (size_t at = line.find(kMark); at != std::string_view::npos; at = line.find(kMark, at + 1)) {
    if (at == 0 || line[at - 1] != ' ') continue;
    const std::string_view rest = line.substr(at + kMark.size());
    for (const auto& [word, level] : kLevels) {
      if (!rest.starts_with(word) || (rest.size() > word.size() && rest[word.size()] != ' ')) continue;
      NcclLogLine result;
      result.level = level;
      // No host's name is so long that its identity lies further left.
      constexpr size_t kLeftLimit = 1024;
      const std::string_view left = line.substr(0, at);
      if (!ReadLeft(left.size() > kLeftLimit ? left.substr(left.size() - kLeftLimit) : left, result)) break;
      result.message = Trimmed(rest.substr(word.size()));
      return result;
    }
  }
  return {};
}

std::optional<int32_t> LauncherRank(std::string_view prefix) {
  prefix = Trimmed(prefix);
  int32_t rank = -1;
  if (prefix.starts_with("[rank")) {
    const size_t close = prefix.find(']');
    if (close != std::string_view::npos && ReadNumber(prefix.substr(5, close - 5), &rank) && rank >= 0) return rank;
    return {};
  }
  if (prefix.starts_with('[')) {
    const size_t comma = prefix.find(','), close = prefix.find("]<std");
    if (comma == std::string_view::npos || close == std::string_view::npos || close < comma) return {};
    int32_t job = 0;
    if (!ReadNumber(prefix.substr(1, comma - 1), &job)) return {};
    if (ReadNumber(prefix.substr(comma + 1, close - comma - 1), &rank) && rank >= 0) return rank;
    return {};
  }
  size_t digits = 0;
  while (digits < prefix.size() && IsDigit(prefix[digits])) ++digits;
  if (digits == 0 || digits > 7 || digits >= prefix.size() || prefix[digits] != ':') return {};
  if (digits + 1 < prefix.size() && prefix[digits + 1] != ' ') return {};  // "12:30:01" is a time.
  if (ReadNumber(prefix.substr(0, digits), &rank)) return rank;
  return {};
}

std::optional<int64_t> PrefixTime(std::string_view prefix) {
  for (size_t at = prefix.size() < 19 ? 0 : prefix.size() - 18; at-- > 0;) {
    if (!IsDigit(prefix[at])) continue;
    const std::string_view text = prefix.substr(at);
    // A zone behind it does not count.
    const auto time = TimeOfLine(text.substr(0, text.find_first_not_of("0123456789.,", 19)));
    if (time) return time;
  }
  return {};
}

std::string_view WithoutColours(std::string_view line, std::string& storage) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return WithoutColour(line, &storage);
}

}  // namespace lockstep::ingest
