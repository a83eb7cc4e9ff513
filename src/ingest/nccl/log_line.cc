#include "ingest/nccl/log_line.h"

#include <array>
#include <charconv>
#include <chrono>
#include <utility>

#include "base/ascii.h"
#include "base/nanoseconds.h"
#include "base/trim.h"

namespace lockstep::ingest {
namespace {

constexpr std::array<std::pair<std::string_view, NcclLevel>, 6> kLevels = {{{"INFO", NcclLevel::kInfo},
                                                                            {"WARN", NcclLevel::kWarn},
                                                                            {"TRACE", NcclLevel::kTrace},
                                                                            {"CALL", NcclLevel::kCall},
                                                                            {"ABORT", NcclLevel::kAbort},
                                                                            {"VERSION", NcclLevel::kVersion}}};

bool IsHostCharacter(char c) { return IsAlphanumeric(c) || c == '.' || c == '-' || c == '_'; }

template <typename Integer>
bool ReadInteger(std::string_view text, Integer& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// Removes ":<digits>" from the end of `text`; false when it does not end so.
bool TakeNumberBehindColon(std::string_view& text, int64_t& number) {
  size_t begin = text.size();
  while (begin > 0 && IsDigit(text[begin - 1])) --begin;
  if (begin == 0 || text[begin - 1] != ':' || !ReadInteger(text.substr(begin), number)) return false;
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
        if (close == std::string_view::npos || !ReadInteger(rest.substr(1, close - 1), line.device)) line.device = -1;
        if (close != std::string_view::npos) rest = Trimmed(rest.substr(close + 1));
      }
      line.source = rest;
      return true;
    }
    end = begin;
  }
  return false;
}

int64_t ReadDigits(std::string_view text, size_t at, size_t count) {
  int64_t value = -1;
  if (at + count > text.size() || !ReadInteger(text.substr(at, count), value)) return -1;
  return value;
}

std::optional<int64_t> ReadTime(std::string_view text) {  // "2026-11-21 03:35:23.5"
  const int64_t year = ReadDigits(text, 0, 4), month = ReadDigits(text, 5, 2), day = ReadDigits(text, 8, 2);
  const int64_t hour = ReadDigits(text, 11, 2), minute = ReadDigits(text, 14, 2), second = ReadDigits(text, 17, 2);
  if (year < 1970 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) return {};
  if (text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T' && text[10] != '_')) return {};
  if (text[13] != ':' || text[16] != ':' || year > 2200) return {};
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(year)),
                                         std::chrono::month(static_cast<unsigned>(month < 0 ? 0 : month)),
                                         std::chrono::day(static_cast<unsigned>(day < 0 ? 0 : day))};
  if (!date.ok()) return {};
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  int64_t ns = (((days * 24 + hour) * 60 + minute) * 60 + second) * kSecondNs;
  if (text.size() > 20 && (text[19] == '.' || text[19] == ',')) {
    int64_t unit = 100'000'000;
    for (size_t i = 20; i < text.size() && IsDigit(text[i]) && unit > 0; ++i, unit /= 10) ns += (text[i] - '0') * unit;
  }
  return ns;
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
    if (close != std::string_view::npos && ReadInteger(prefix.substr(5, close - 5), rank) && rank >= 0) return rank;
    return {};
  }
  if (prefix.starts_with('[')) {
    const size_t comma = prefix.find(','), close = prefix.find("]<std");
    if (comma == std::string_view::npos || close == std::string_view::npos || close < comma) return {};
    int32_t job = 0;
    if (!ReadInteger(prefix.substr(1, comma - 1), job)) return {};
    if (ReadInteger(prefix.substr(comma + 1, close - comma - 1), rank) && rank >= 0) return rank;
    return {};
  }
  size_t digits = 0;
  while (digits < prefix.size() && IsDigit(prefix[digits])) ++digits;
  if (digits == 0 || digits > 7 || digits >= prefix.size() || prefix[digits] != ':') return {};
  if (digits + 1 < prefix.size() && prefix[digits + 1] != ' ') return {};  // "12:30:01" is a time.
  if (ReadInteger(prefix.substr(0, digits), rank)) return rank;
  return {};
}

std::optional<int64_t> PrefixTime(std::string_view prefix) {
  for (size_t at = prefix.size() < 19 ? std::string_view::npos : prefix.size() - 19; at != std::string_view::npos;
       --at) {
    if (IsDigit(prefix[at])) {
      if (const std::optional<int64_t> time = ReadTime(prefix.substr(at))) return time;
    }
    if (at == 0) break;
  }
  return {};
}

std::string_view WithoutColours(std::string_view line, std::string& storage) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.find('\x1b') == std::string_view::npos) return line;
  storage.clear();
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      storage += line[i];
      continue;
    }
    if (i + 1 >= line.size()) break;
    if (line[i + 1] != '[') {
      ++i;
      continue;
    }
    i += 2;
    while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
  }
  return storage;
}

}  // namespace lockstep::ingest
