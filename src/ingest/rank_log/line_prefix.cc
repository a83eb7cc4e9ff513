#include "ingest/rank_log/line_prefix.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/calendar.h"
#include "base/nanoseconds.h"
#include "base/text_scan.h"

namespace lockstep::ingest {
namespace {

constexpr int32_t kMostRanks = 1 << 24;

std::optional<int32_t> TakeRank(TextCursor* cursor) {
  const auto rank = cursor->Number<int32_t>();
  return rank && *rank >= 0 && *rank < kMostRanks ? rank : std::nullopt;
}

/// One prefix; false = none is there.
bool TakeOne(PrefixedLine* line) {
  TextCursor cursor(line->text);
  if (cursor.Skip("[rank")) {
    const auto rank = TakeRank(&cursor);
    if (!rank || !cursor.Skip("]")) return false;
    if (!cursor.Skip(": ") && !cursor.Skip(":") && !cursor.Skip(" ")) return false;
    line->rank = rank;
    line->is_weak = false;
  } else if (cursor.Skip("[default")) {
    if (!TakeRank(&cursor) || !cursor.Skip("]:")) return false;
  } else if (cursor.Skip("[pod/")) {
    if (!cursor.Until("] ")) return false;
  } else if (cursor.Skip("[")) {
    // "[1,3]<stderr>:" and "[job@1,3]<stderr>:".
    const auto job = cursor.Until(",");
    if (!job || job->size() > 64 || job->find_first_of(" ]") != std::string_view::npos) return false;
    const auto rank = TakeRank(&cursor);
    if (!rank || (!cursor.Skip("]<stdout>:") && !cursor.Skip("]<stderr>:"))) return false;
    cursor.Skip(" ");
    line->rank = rank;
    line->is_weak = false;
  } else if (!cursor.empty() && (IsDigit(cursor.rest()[0]) || cursor.rest()[0] == ' ')) {
    cursor.SkipBlanks();  // srun pads to the widest.
    const auto rank = TakeRank(&cursor);
    if (!rank || !cursor.Skip(": ")) return false;
    if (!line->rank) line->is_weak = true;
    line->rank = rank;
  } else {
    return false;
  }
  line->text = cursor.rest();
  return true;
}

/// `digits` digits at `at`.
std::optional<int> Digits(std::string_view text, size_t at, size_t digits) {
  if (at + digits > text.size()) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(at, digits)) {
    if (!IsDigit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

/// "03:35:23[.5]" at `at`, which is set behind it.
std::optional<int64_t> TimeOfDay(std::string_view text, size_t* at) {
  const auto hour = Digits(text, *at, 2);
  const auto minute = Digits(text, *at + 3, 2);
  const auto second = Digits(text, *at + 6, 2);
  if (!hour || !minute || !second || text[*at + 2] != ':' || text[*at + 5] != ':') return std::nullopt;
  if (*hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  *at += 8;
  int64_t fraction = 0;
  if (*at + 1 < text.size() && (text[*at] == '.' || text[*at] == ',') && IsDigit(text[*at + 1])) {
    int64_t unit = 100'000'000;
    for (++*at; *at < text.size() && IsDigit(text[*at]); ++*at, unit /= 10) fraction += (text[*at] - '0') * unit;
  }
  return ((*hour * 60 + *minute) * 60 + *second) * kSecondNs + fraction;
}

/// "Z", "+01:00" or "+0100" at `at`: seconds to take off.
int64_t ZoneSeconds(std::string_view text, size_t at) {
  if (at >= text.size() || (text[at] != '+' && text[at] != '-')) return 0;
  const auto hours = Digits(text, at + 1, 2);
  const size_t minutes_at = at + 3 < text.size() && text[at + 3] == ':' ? at + 4 : at + 3;
  const auto minutes = Digits(text, minutes_at, 2);
  if (!hours || !minutes || *hours > 14) return 0;
  return (text[at] == '+' ? 1 : -1) * (*hours * 3600 + *minutes * 60);
}

}  // namespace

PrefixedLine TakePrefixes(std::string_view line) {
  PrefixedLine taken{.rank = std::nullopt, .text = line};
  for (int i = 0; i < 4 && TakeOne(&taken); ++i) {
  }
  return taken;
}

std::string_view WithoutColour(std::string_view line, std::string* storage) {
  if (line.find('\x1b') == std::string_view::npos) return line;
  storage->clear();
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      *storage += line[i];
      continue;
    }
    if (i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
    }
  }
  return *storage;
}

std::optional<int64_t> TimeOfLine(std::string_view line) {
  line = line.substr(0, 128);
  for (size_t i = 0; i + 19 <= line.size() && i < 96; ++i) {
    if (line[i + 4] != '-' || line[i + 7] != '-' || line[i + 13] != ':') continue;
    const auto year = Digits(line, i, 4);
    const auto month = Digits(line, i + 5, 2);
    const auto day = Digits(line, i + 8, 2);
    if (!year || !month || !day || *year < 1990 || *year > 2200 || *month < 1 || *month > 12 || *day < 1 || *day > 31) {
      continue;
    }
    if (line[i + 10] != ' ' && line[i + 10] != 'T' && line[i + 10] != '_') continue;
    size_t at = i + 11;
    const auto of_day = TimeOfDay(line, &at);
    if (!of_day) continue;
    return (DaysFromEpoch(*year, *month, *day) * 86'400 - ZoneSeconds(line, at)) * kSecondNs + *of_day;
  }
  return std::nullopt;
}

std::optional<GlogHead> ReadGlogHead(std::string_view text) {
  if (text.starts_with("[")) text.remove_prefix(1);
  // glog writes the month with two digits, PyTorch's own head with as many as it has.
  const size_t blank = text.find(' ');
  if (text.size() < 14 || std::string_view("IWEF").find(text[0]) == std::string_view::npos ||
      (blank != 4 && blank != 5)) {
    return std::nullopt;
  }
  const auto month = Digits(text, 1, blank - 3);
  const auto day = Digits(text, blank - 2, 2);
  size_t at = blank + 1;
  if (!month || !day || *month < 1 || *month > 12 || *day < 1 || *day > 31) return std::nullopt;
  const auto of_day = TimeOfDay(text, &at);
  if (!of_day) return std::nullopt;
  return GlogHead{text[0], *month, *day, *of_day};
}

}  // namespace lockstep::ingest
