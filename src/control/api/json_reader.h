#pragma once

#include <rapidjson/document.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/api/names.h"

namespace lockstep::control {

constexpr size_t kJsonDepth = 16;  ///< Objects and lists within each other.

/// Parses a whole text. Errors: kCorruptData with the byte at which it stops being JSON; kLimitExceeded when nested
/// deeper than kJsonDepth. The parser keeps its own stack, so depth costs no call stack before it is seen.
Result<rapidjson::Document> ParseJson(std::string_view text);

/// Reads members of one object into variables; the first error stays and ends the reading. A member that is missing or
/// null leaves its variable as it is, unless it is required.
class ObjectReader {
 public:
  using Value = rapidjson::Value;

  /// `path` names the object in errors: "targets[3].process", empty for the document.
  ObjectReader(const Value& value, std::string path);

  /// Whole numbers, as such: 3.0 is none. Range inclusive; outside: kInvalidArgument.
  template <typename T>
  void Int(std::string_view name, int64_t least, int64_t most, T* out) {
    int64_t value = 0;
    if (ReadInt(name, least, most, &value)) *out = static_cast<T>(value);
  }
  template <typename T>
  void Int(std::string_view name, int64_t least, int64_t most, std::optional<T>* out) {
    int64_t value = 0;
    if (ReadInt(name, least, most, &value)) *out = static_cast<T>(value);
  }
  void Uint(std::string_view name, uint64_t* out);
  void Bool(std::string_view name, bool* out);
  void Text(std::string_view name, std::string* out, size_t most_bytes = kTextBytes);
  /// Of these characters only, at most `most_bytes`; empty is allowed. Anything else: kInvalidArgument.
  void Word(std::string_view name, std::string_view also, size_t most_bytes, std::string* out);
  template <typename Enum, size_t N>
  void Name(std::string_view name, const NameTable<Enum, N>& table, Enum* out) {
    std::string word;
    Text(name, &word, 64);
    if (word.empty() || failed()) return;
    if (const std::optional<Enum> value = table.Find(word)) {
      *out = *value;
    } else {
      Fail(ErrorCode::kInvalidArgument, name, "is not a word that is known here");
    }
  }
  /// Calls `read` for each element with its path.
  void List(std::string_view name, size_t most, const std::function<Status(const Value&, std::string)>& read);
  /// A member that is an object; null when it is missing, which is an error.
  const Value* Required(std::string_view name);
  /// The same; missing is fine.
  const Value* Object(std::string_view name);
  void Require(std::string_view name, bool is_there);
  void RequireList(std::string_view name) { Require(name, failed() || Find(name) != nullptr); }

  void Fail(ErrorCode code, std::string_view name, std::string_view what);
  void Fail(Error error);
  void Check(Status status);
  bool failed() const { return error_.has_value(); }
  Status status() const;
  std::string Path(std::string_view name) const;

  static constexpr size_t kTextBytes = 16 * 1024;

 private:
  const Value* Find(std::string_view name) const;
  bool ReadInt(std::string_view name, int64_t least, int64_t most, int64_t* out);

  const Value* object_ = nullptr;
  std::string path_;
  std::optional<Error> error_;
};

constexpr int64_t kAnyInt = std::numeric_limits<int64_t>::max();

/// Characters of `Word`: letters, digits, and those of `also`.
bool IsWord(std::string_view text, std::string_view also);

}  // namespace lockstep::control
