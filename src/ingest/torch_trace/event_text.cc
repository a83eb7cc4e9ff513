#include "ingest/torch_trace/event_text.h"

#include <cstring>
#include <optional>

#include "base/ascii.h"
#include "base/utf8.h"

namespace lockstep::ingest {
namespace {

constexpr int kMaxDepth = 512;
/// A longer string is a sign of a lost quote; without a bound, every lost quote would cost a walk through the rest of
/// the file.
constexpr ptrdiff_t kMaxStringBytes = ptrdiff_t{1} << 20;

bool IsDelimiter(char c) { return c == ',' || c == '}' || c == ']' || c == ':'; }

/// Resolves the escape at text[0] == '\\'. Returns the number of bytes it took, 0 when it is not a valid escape.
size_t AppendEscape(std::string_view text, std::string* out) {
  if (text.size() < 2) return 0;
  switch (text[1]) {
    case '"':
    case '\\':
    case '/': out->push_back(text[1]); return 2;
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't': out->push_back(' '); return 2;
    case 'u': break;
    default: return 0;
  }
  const auto first = HexNumber(text.substr(2), 4);
  if (!first) return 0;
  if (*first >= 0xD800 && *first < 0xDC00) {
    if (text.size() >= 12 && text[6] == '\\' && text[7] == 'u') {
      const auto second = HexNumber(text.substr(8), 4);
      if (second && *second >= 0xDC00 && *second < 0xE000) {
        AppendUtf8(0x10000 + ((*first - 0xD800) << 10) + (*second - 0xDC00), out);
        return 12;
      }
    }
    return 0;
  }
  if (*first >= 0xDC00 && *first < 0xE000) return 0;
  AppendUtf8(*first < 0x20 ? ' ' : *first, out);
  return 6;
}

}  // namespace

ParseOutcome EventText::ParseString(const char* cursor, std::string_view* raw, bool* escaped, const char** next) const {
  const char* const start = ++cursor;
  *escaped = false;
  for (;;) {
    const char* quote = static_cast<const char*>(std::memchr(cursor, '"', static_cast<size_t>(end_ - cursor)));
    if (quote == nullptr) return end_ - start > kMaxStringBytes ? ParseOutcome::kBad : EndOfText();
    if (quote - start > kMaxStringBytes) return ParseOutcome::kBad;
    size_t backslashes = 0;
    while (quote - static_cast<ptrdiff_t>(backslashes) > start &&
           quote[-1 - static_cast<ptrdiff_t>(backslashes)] == '\\')
      ++backslashes;
    if (!*escaped && std::memchr(cursor, '\\', static_cast<size_t>(quote - cursor)) != nullptr) *escaped = true;
    cursor = quote + 1;
    if (backslashes % 2 == 1) continue;
    const char* after = SkipSpace(cursor);
    if (after == end_) {
      if (!at_end_of_data_) return ParseOutcome::kNeedMore;
    } else if (!IsDelimiter(*after)) {
      damage_->Add(DamageKind::kUnescapedQuote, base_offset_ + static_cast<uint64_t>(quote - begin_));
      *escaped = true;
      continue;
    }
    *raw = {start, static_cast<size_t>(quote - start)};
    *next = cursor;
    return ParseOutcome::kOk;
  }
}

ParseOutcome EventText::SkipScalar(const char* cursor, ValueKind* kind, const char** next) const {
  const char* const start = cursor;
  while (cursor < end_ && !IsDelimiter(*cursor) && !IsSpace(*cursor) && *cursor != '"' && *cursor != '{' &&
         *cursor != '[')
    ++cursor;
  if (cursor == end_ && !at_end_of_data_) return ParseOutcome::kNeedMore;
  const std::string_view text(start, static_cast<size_t>(cursor - start));
  if (text.empty()) return cursor == end_ ? EndOfText() : ParseOutcome::kBad;
  *next = cursor;
  const char first = text[0];
  if (IsDigit(first) || (first == '-' && text.size() > 1 && IsDigit(text[1])))
    *kind = ValueKind::kNumber;
  else if (text == "true")
    *kind = ValueKind::kTrue;
  else if (text == "false")
    *kind = ValueKind::kFalse;
  else if (text == "null")
    *kind = ValueKind::kNull;
  else if (text == "NaN" || text == "Infinity" || text == "-Infinity" || text == "nan" || text == "inf" ||
           text == "-nan" || text == "-inf")
    *kind = ValueKind::kNonFinite;
  else if (first == '.' || first == '+' || first == '-')
    *kind = ValueKind::kUnknown;
  else if (first >= 'A' && first <= 'z')
    *kind = ValueKind::kUnknown;
  else
    return ParseOutcome::kBad;
  return ParseOutcome::kOk;
}

ParseOutcome EventText::SkipNested(const char* cursor, const char** next) const {
  int depth = 0;
  while (cursor < end_) {
    const char c = *cursor;
    if (c == '"') {
      std::string_view raw;
      bool escaped = false;
      const ParseOutcome outcome = ParseString(cursor, &raw, &escaped, &cursor);
      if (outcome != ParseOutcome::kOk) return outcome;
      continue;
    }
    ++cursor;
    if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return ParseOutcome::kBad;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) {
        *next = cursor;
        return ParseOutcome::kOk;
      }
    }
  }
  return EndOfText();
}

ParseOutcome EventText::SkipValue(const char* cursor, ValueKind* kind, std::string_view* raw, bool* escaped,
                                  const char** next) const {
  if (cursor == end_) return EndOfText();
  *escaped = false;
  if (*cursor == '"') {
    *kind = ValueKind::kString;
    return ParseString(cursor, raw, escaped, next);
  }
  ParseOutcome outcome = ParseOutcome::kOk;
  if (*cursor == '{' || *cursor == '[') {
    *kind = *cursor == '{' ? ValueKind::kObject : ValueKind::kArray;
    outcome = SkipNested(cursor, next);
  } else {
    outcome = SkipScalar(cursor, kind, next);
  }
  if (outcome == ParseOutcome::kOk) *raw = {cursor, static_cast<size_t>(*next - cursor)};
  return outcome;
}

ParseOutcome EventText::ParseMembers(const char* cursor, bool in_args, std::vector<Field>* fields,
                                     const char** next) const {
  ++cursor;  // '{'
  for (;;) {
    cursor = SkipSpace(cursor);
    while (cursor < end_ && *cursor == ',') cursor = SkipSpace(cursor + 1);
    if (cursor == end_) return EndOfText();
    if (*cursor == '}') {
      *next = cursor + 1;
      return ParseOutcome::kOk;
    }
    if (*cursor != '"') return ParseOutcome::kBad;
    Field field;
    field.in_args = in_args;
    bool key_escaped = false;
    ParseOutcome outcome = ParseString(cursor, &field.key, &key_escaped, &cursor);
    if (outcome != ParseOutcome::kOk) return outcome;
    cursor = SkipSpace(cursor);
    if (cursor == end_) return EndOfText();
    if (*cursor != ':') return ParseOutcome::kBad;
    cursor = SkipSpace(cursor + 1);
    if (cursor == end_) return EndOfText();
    if (!in_args && *cursor == '{' && field.key == "args") {
      const char* const args_start = cursor;
      outcome = ParseMembers(cursor, true, fields, &cursor);
      if (outcome != ParseOutcome::kOk) return outcome;
      field.kind = ValueKind::kObject;
      field.raw = {args_start, static_cast<size_t>(cursor - args_start)};
    } else {
      outcome = SkipValue(cursor, &field.kind, &field.raw, &field.escaped, &cursor);
      if (outcome != ParseOutcome::kOk) return outcome;
    }
    fields->push_back(field);
    const char* after = SkipSpace(cursor);
    if (after == end_) return EndOfText();
    if (*after != ',' && *after != '}') return ParseOutcome::kBad;
    cursor = after;
  }
}

ParseOutcome EventText::ParseObject(const char* cursor, std::vector<Field>* fields, const char** next) const {
  fields->clear();
  return ParseMembers(cursor, false, fields, next);
}

std::string_view DecodeString(std::string_view raw, bool escaped, uint64_t byte_offset, Damage* damage,
                              std::string* scratch) {
  bool plain = !escaped;
  for (const char c : raw)
    plain = plain && static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x80;
  if (plain) return raw;
  scratch->clear();
  for (size_t i = 0; i < raw.size();) {
    const char c = raw[i];
    if (c == '\\') {
      const size_t taken = AppendEscape(raw.substr(i), scratch);
      if (taken != 0) {
        i += taken;
        continue;
      }
      damage->Add(DamageKind::kInvalidEscape, byte_offset + i);
      scratch->push_back('\\');
      ++i;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      damage->Add(DamageKind::kControlCharacter, byte_offset + i);
      scratch->push_back(' ');
      ++i;
    } else if (static_cast<unsigned char>(c) < 0x80) {
      scratch->push_back(c);
      ++i;
    } else if (const Utf8Character character = ReadUtf8(raw, i); character.valid) {
      scratch->append(raw.substr(i, character.length));
      i += character.length;
    } else {
      damage->Add(DamageKind::kInvalidUtf8, byte_offset + i);
      scratch->append("\xEF\xBF\xBD");
      ++i;
    }
  }
  return *scratch;
}

}  // namespace lockstep::ingest
