#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/torch_trace/damage.h"

namespace lockstep::ingest {

enum class ValueKind : uint8_t { kString, kNumber, kNonFinite, kTrue, kFalse, kNull, kArray, kObject, kUnknown };

/// A member of an event object, or of its "args". Spans point into the text that was parsed.
struct Field {
  std::string_view key;  ///< Without quotes, as written.
  std::string_view raw;  ///< Value as written; strings without their quotes, still escaped.
  ValueKind kind = ValueKind::kUnknown;
  bool in_args = false;
  bool escaped = false;  ///< A string with backslashes or unescaped quotes.
};

enum class ParseOutcome : uint8_t {
  kOk,
  kNeedMore,  ///< The text ends inside the value.
  kBad,       ///< Not JSON, even leniently.
};

/// Parses JSON text leniently: strings end at a quote that is followed by one of `,:}]`, NaN and Infinity are values,
/// trailing commas are allowed. Nothing is copied. Damage is counted with offsets relative to `base_offset` at `begin`.
class EventText {
 public:
  EventText(const char* begin, const char* end, uint64_t base_offset, bool at_end_of_data, Damage* damage)
      : begin_(begin), end_(end), base_offset_(base_offset), at_end_of_data_(at_end_of_data), damage_(damage) {}

  /// Parses an object at `cursor` (on its '{') into its fields and those of its "args". `*next` is behind its '}'.
  ParseOutcome ParseObject(const char* cursor, std::vector<Field>* fields, const char** next) const;

  /// Finds the end of any value. `*next` is behind it.
  ParseOutcome SkipValue(const char* cursor, ValueKind* kind, std::string_view* raw, bool* escaped,
                         const char** next) const;

  /// Reads a string on its opening quote.
  ParseOutcome ParseString(const char* cursor, std::string_view* raw, bool* escaped, const char** next) const;

  const char* SkipSpace(const char* cursor) const {
    while (cursor < end_ && (*cursor == ' ' || *cursor == '\n' || *cursor == '\r' || *cursor == '\t')) ++cursor;
    return cursor;
  }

 private:
  ParseOutcome ParseMembers(const char* cursor, bool in_args, std::vector<Field>* fields, const char** next) const;
  ParseOutcome SkipNested(const char* cursor, const char** next) const;
  ParseOutcome SkipScalar(const char* cursor, ValueKind* kind, const char** next) const;
  static ParseOutcome EndOfText() { return ParseOutcome::kNeedMore; }

  const char* begin_;
  const char* end_;
  uint64_t base_offset_;
  bool at_end_of_data_;
  Damage* damage_;
};

/// The text of a string value: escapes resolved, control characters and invalid UTF-8 replaced. Returns `raw` itself
/// when there is nothing to do, else a view of `*scratch`.
std::string_view DecodeString(std::string_view raw, bool escaped, uint64_t byte_offset, Damage* damage,
                              std::string* scratch);

}  // namespace lockstep::ingest
