#include "model/log_line/line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/calendar.h"
#include "base/text_scan.h"
#include "base/timespec.h"
#include "base/utf8.h"

namespace lockstep::logs {
namespace {

constexpr int64_t kDay_s = 86'400;
constexpr size_t kDateBytes = 30;  ///< "2026-11-23T02:15:03.123456789Z"
constexpr size_t kMostWordBytes = 64;
constexpr int32_t kMostRanks = 1 << 24;

/// Seconds and the rest of a time, the rest never negative.
struct SplitTime {
  explicit SplitTime(int64_t time_ns)
      : seconds(time_ns / kSecondNs - (time_ns % kSecondNs < 0 ? 1 : 0)), rest_ns(time_ns - seconds * kSecondNs) {}
  int64_t seconds;
  int64_t rest_ns;
};

struct Date {
  int64_t year;
  int month;
  int day;
};

// Years from March, as the leap day is a year's last.
Date DateOfDay(int64_t days) {
  days += 719'468;
  const int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const int64_t of_era = days - era * 146'097;
  const int64_t year = (of_era - of_era / 1'460 + of_era / 36'524 - of_era / 146'096) / 365;
  const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  const int64_t shifted = (5 * of_year + 2) / 153;
  const int month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  return {year + era * 400 + (month <= 2 ? 1 : 0), month, static_cast<int>(of_year - (153 * shifted + 2) / 5 + 1)};
}

void AppendPadded(int64_t value, size_t digits, std::string* out) {
  std::array<char, 20> text;
  for (size_t i = digits; i-- > 0; value /= 10) text[i] = static_cast<char>('0' + value % 10);
  out->append(text.data(), digits);
}

/// `count` digits at `at`; false when they are none.
bool ReadDigits(std::string_view text, size_t at, size_t count, int64_t* value) {
  *value = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (!IsDigit(text[i])) return false;
    *value = *value * 10 + (text[i] - '0');
  }
  return true;
}

/// "2026-11-23T02:15:03.123456789Z" where `line` begins, which has that many bytes.
std::optional<int64_t> ReadDate(std::string_view line) {
  if (line[4] != '-' || line[7] != '-' || line[10] != 'T' || line[13] != ':' || line[16] != ':' || line[19] != '.' ||
      line[29] != 'Z') {
    return std::nullopt;
  }
  int64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, rest_ns = 0;
  if (!ReadDigits(line, 0, 4, &year) || !ReadDigits(line, 5, 2, &month) || !ReadDigits(line, 8, 2, &day) ||
      !ReadDigits(line, 11, 2, &hour) || !ReadDigits(line, 14, 2, &minute) || !ReadDigits(line, 17, 2, &second) ||
      !ReadDigits(line, 20, 9, &rest_ns)) {
    return std::nullopt;
  }
  // What 64 bits of nanoseconds hold.
  if (year < 1970 || year > 2261 || month < 1 || month > 12 || day < 1 || day > 31) return std::nullopt;
  if (hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const int64_t seconds = DaysFromEpoch(year, month, day) * kDay_s + (hour * 60 + minute) * 60 + second;
  return seconds * kSecondNs + rest_ns;
}

/// A word up to `end`, which is taken too.
std::optional<std::string_view> TakeWord(TextCursor* cursor, std::string_view end) {
  const std::string_view rest = cursor->rest().substr(0, kMostWordBytes + end.size());
  const size_t at = rest.find(end);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::string_view word = rest.substr(0, at);
  if (word.find_first_of(" \\\"") != std::string_view::npos) return std::nullopt;
  cursor->Skip(rest.substr(0, at + end.size()));
  return word;
}

/// A rank, or `none`; false when it is neither.
bool TakeRank(TextCursor* cursor, std::string_view none, std::optional<int32_t>* rank) {
  if (cursor->Skip(none)) {
    rank->reset();
    return true;
  }
  *rank = cursor->Number<int32_t>();
  return *rank && **rank >= 0 && **rank < kMostRanks;
}

std::optional<ParsedLine> ParseText(std::string_view line) {
  if (line.size() < kDateBytes + 2 || line[kDateBytes] != ' ') return std::nullopt;
  const auto time_ns = ReadDate(line);
  if (!time_ns) return std::nullopt;
  ParsedLine parsed;
  parsed.head.time_unix_ns = *time_ns;
  TextCursor cursor(line.substr(kDateBytes + 1));
  if (!cursor.Skip("- ")) {
    const auto seconds = cursor.Number<int64_t>();
    const std::string_view rest = cursor.rest();
    int64_t rest_ns = 0;
    if (!seconds || *seconds < 0 || *seconds > INT64_MAX / kSecondNs - 1 || rest.size() < 11 || rest[0] != '.' ||
        rest[10] != ' ' || !ReadDigits(rest, 1, 9, &rest_ns)) {
      return std::nullopt;
    }
    parsed.head.monotonic_ns = *seconds * kSecondNs + rest_ns;
    cursor.Skip(rest.substr(0, 11));
  }
  const std::string_view rest = cursor.rest();
  if (rest.size() < 2 || rest[1] != ' ') return std::nullopt;
  const auto level = LevelOfLetter(rest[0]);
  if (!level) return std::nullopt;
  parsed.head.level = *level;
  cursor.Skip(rest.substr(0, 2));
  if (!cursor.Skip("rank") || !TakeRank(&cursor, "-", &parsed.head.rank) || !cursor.Skip(" ")) return std::nullopt;
  const auto host = TakeWord(&cursor, " ");
  if (!host) return std::nullopt;
  parsed.head.host = *host;
  const auto source = TakeWord(&cursor, ":");
  if (!source) return std::nullopt;
  parsed.head.source = *source;
  cursor.Skip(" ");
  parsed.text = cursor.rest();
  return parsed;
}

/// A JSON string behind its opening quote, up to the closing one, which is taken. False: it does not end, or is none.
bool TakeString(std::string_view* rest, std::string* storage, std::string_view* text) {
  const size_t plain = rest->find_first_of("\"\\");
  if (plain == std::string_view::npos) return false;
  if ((*rest)[plain] == '"') {
    *text = rest->substr(0, plain);
    rest->remove_prefix(plain + 1);
    return true;
  }
  storage->clear();
  for (size_t at = 0; at < rest->size();) {
    const size_t next = rest->find_first_of("\"\\", at);
    if (next == std::string_view::npos) return false;
    storage->append(rest->substr(at, next - at));
    if ((*rest)[next] == '"') {
      *text = *storage;
      rest->remove_prefix(next + 1);
      return true;
    }
    if (next + 1 == rest->size()) return false;
    at = next + 2;
    switch ((*rest)[next + 1]) {
      case 'n': storage->push_back('\n'); break;
      case 't': storage->push_back('\t'); break;
      case 'r': storage->push_back('\r'); break;
      case 'b': storage->push_back('\b'); break;
      case 'f': storage->push_back('\f'); break;
      case '"':
      case '\\':
      case '/': storage->push_back((*rest)[next + 1]); break;
      case 'u': {
        auto code = HexNumber(rest->substr(at), 4);
        if (!code) return false;
        at += 4;
        if (*code >= 0xd800 && *code < 0xdc00 && rest->substr(at).starts_with("\\u")) {
          const auto low = HexNumber(rest->substr(at + 2), 4);
          if (low && *low >= 0xdc00 && *low < 0xe000) {
            code = 0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00);
            at += 6;
          }
        }
        AppendUtf8(*code, storage);
        break;
      }
      default: return false;
    }
  }
  return false;
}

std::optional<ParsedLine> ParseJson(std::string_view line, std::string* storage) {
  TextCursor cursor(line);
  if (!cursor.Skip("{\"time_ns\":")) return std::nullopt;
  const auto time_ns = cursor.Number<int64_t>();
  if (!time_ns || !cursor.Skip(",\"mono_ns\":")) return std::nullopt;
  ParsedLine parsed;
  parsed.head.time_unix_ns = *time_ns;
  if (!cursor.Skip("null")) {
    parsed.head.monotonic_ns = cursor.Number<int64_t>();
    if (!parsed.head.monotonic_ns) return std::nullopt;
  }
  if (!cursor.Skip(",\"level\":\"")) return std::nullopt;
  const auto name = TakeWord(&cursor, "\"");
  const auto level = name ? LevelOfName(*name) : std::nullopt;
  if (!level || !cursor.Skip(",\"rank\":") || !TakeRank(&cursor, "null", &parsed.head.rank)) return std::nullopt;
  parsed.head.level = *level;
  if (!cursor.Skip(",\"host\":\"")) return std::nullopt;
  const auto host = TakeWord(&cursor, "\"");
  if (!host || !cursor.Skip(",\"source\":\"")) return std::nullopt;
  const auto source = TakeWord(&cursor, "\"");
  if (!source || !cursor.Skip(",\"text\":\"")) return std::nullopt;
  parsed.head.host = *host;
  parsed.head.source = *source;
  std::string_view rest = cursor.rest();
  if (!TakeString(&rest, storage, &parsed.text)) return std::nullopt;
  // Further fields may follow; a line that was cut has no end.
  if (!line.ends_with("}") || rest.empty() || (rest.front() != ',' && rest != "}")) return std::nullopt;
  return parsed;
}

bool IsPlainInJson(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

}  // namespace

void AppendJsonText(std::string_view text, std::string* out) {
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    while (at < text.size() && IsPlainInJson(text[at])) ++at;
    out->append(text.substr(begin, at - begin));
    if (at == text.size()) return;
    const auto c = static_cast<unsigned char>(text[at]);
    if (c >= 0x80) {
      const Utf8Character character = ReadUtf8(text, at);
      out->append(character.valid ? text.substr(at, character.length) : std::string_view("\xef\xbf\xbd"));
      at += character.length;
      continue;
    }
    ++at;
    switch (c) {
      case '"': out->append("\\\""); break;
      case '\\': out->append("\\\\"); break;
      case '\n': out->append("\\n"); break;
      case '\r': out->append("\\r"); break;
      case '\t': out->append("\\t"); break;
      default: out->append(fmt::format("\\u{:04x}", c));
    }
  }
}

LineTime LineTime::Now() { return {ClockNs(CLOCK_REALTIME), ClockNs(CLOCK_MONOTONIC)}; }

std::string CleanWord(std::string_view word) {
  std::string clean(word.substr(0, kMostWordBytes));
  for (char& c : clean) {
    const bool harmless = IsAlphanumeric(c) || c == '.' || c == '-' || c == '_';
    if (!harmless) c = '_';
  }
  return clean.empty() ? "-" : clean;
}

std::string DateText(int64_t unix_ns) {
  const int64_t seconds = SplitTime(unix_ns).seconds;
  const int64_t days = seconds / kDay_s - (seconds % kDay_s < 0 ? 1 : 0);
  const Date date = DateOfDay(days);
  const int64_t of_day = seconds - days * kDay_s;
  std::string text;
  AppendPadded(std::clamp<int64_t>(date.year, 0, 9999), 4, &text);
  text += '-';
  AppendPadded(date.month, 2, &text);
  text += '-';
  AppendPadded(date.day, 2, &text);
  text += 'T';
  AppendPadded(of_day / 3600, 2, &text);
  text += ':';
  AppendPadded(of_day / 60 % 60, 2, &text);
  text += ':';
  AppendPadded(of_day % 60, 2, &text);
  return text;
}

LineWriter::LineWriter(LineForm form, std::optional<int32_t> rank, std::string_view host) : form_(form), rank_(rank) {
  const std::string who = rank ? fmt::format("{}", *rank) : form == LineForm::kText ? "-" : "null";
  rank_and_host_ = form == LineForm::kText
                       ? fmt::format("rank{} {} ", who, CleanWord(host))
                       : fmt::format("\"rank\":{},\"host\":\"{}\",\"source\":\"", who, CleanWord(host));
}

void LineWriter::AppendDate(int64_t unix_ns, std::string* out) {
  const SplitTime time(unix_ns);
  if (time.seconds != second_) {
    date_ = DateText(unix_ns) + '.';
    second_ = time.seconds;
  }
  out->append(date_);
  AppendPadded(time.rest_ns, 9, out);
  out->append("Z ");
}

void LineWriter::Append(const LineTime& time, Level level, std::string_view source, std::string_view text,
                        std::string* out) {
  if (form_ == LineForm::kJson) return AppendJson(time, level, source, text, out);
  const size_t begin = out->size();
  AppendDate(time.unix_ns, out);
  fmt::format_int seconds(time.monotonic_ns / kSecondNs);
  out->append(seconds.data(), seconds.size());
  out->push_back('.');
  AppendPadded(time.monotonic_ns % kSecondNs, 9, out);
  out->push_back(' ');
  out->push_back(LevelLetter(level));
  out->push_back(' ');
  out->append(rank_and_host_);
  out->append(source);
  out->append(": ");
  const size_t head = out->size() - begin;
  for (;;) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out->append(line);
    out->push_back('\n');
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
    if (text.empty()) return;
    out->append(*out, begin, head);
  }
}

void LineWriter::AppendJson(const LineTime& time, Level level, std::string_view source, std::string_view text,
                            std::string* out) {
  fmt::format_to(std::back_inserter(*out), "{{\"time_ns\":{},\"mono_ns\":{},\"level\":\"{}\",", time.unix_ns,
                 time.monotonic_ns, LevelName(level));
  out->append(rank_and_host_);
  out->append(source);
  out->append("\",\"text\":\"");
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  AppendJsonText(text, out);
  out->append("\"}\n");
}

std::optional<ParsedLine> ParseLine(std::string_view line, std::string* storage) {
  if (line.empty()) return std::nullopt;
  return line.front() == '{' ? ParseJson(line, storage) : ParseText(line);
}

}  // namespace lockstep::logs
