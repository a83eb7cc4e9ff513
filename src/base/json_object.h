#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/json_value.h"
#include "base/result.h"

namespace lockstep {

/// Reads members of one JSON object into variables; the first error stays and ends the reading. A member that is
/// missing or null leaves its variable as it is, unless it is required. Errors name the member by its path,
/// "targets[3].process.pid is not a whole number": kCorruptData for what is of another type, kInvalidArgument for what
/// is out of the range that was asked for.
class JsonObject {
 public:
  /// `path` names the object in errors: "targets[3].process", empty for the document.
  JsonObject(JsonValue value, std::string path);

  /// Whatever the variable's type holds; anything else is of another type: "pid: expected an integer in its range".
  template <typename T>
  requires std::is_integral_v<T>
  void Read(std::string_view name, T* out) {
    const JsonValue value = Find(name);
    if (!value) return;
    if constexpr (std::is_unsigned_v<T>) {
      if (const auto number = value.Uint(); number && *number <= std::numeric_limits<T>::max()) {
        *out = static_cast<T>(*number);
        return;
      }
    } else {
      const auto number = value.Int();
      if (number && *number >= std::numeric_limits<T>::min() && *number <= std::numeric_limits<T>::max()) {
        *out = static_cast<T>(*number);
        return;
      }
    }
    Expected(name, "an integer in its range");
  }
  void Read(std::string_view name, bool* out);
  void Read(std::string_view name, std::string* out);  ///< Of any length; invalid UTF-8 is made valid.
  template <typename T>
  void Read(std::string_view name, std::optional<T>* out) {
    if (Find(name)) Read(name, &out->emplace());
  }

  /// Whole numbers, as such: 3.0 is none. Range inclusive.
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
  /// A number of either sign up to `most`.
  void Number(std::string_view name, double most, double* out);
  /// Invalid UTF-8 is made valid.
  void Text(std::string_view name, std::string* out, size_t most_bytes = kTextBytes);
  /// Of these characters only, at most `most_bytes`; empty is allowed. Anything else: kInvalidArgument.
  void Word(std::string_view name, std::string_view also, size_t most_bytes, std::string* out);
  /// A word of `table`, which has a Find() of texts.
  template <typename Table, typename Enum>
  void Name(std::string_view name, const Table& table, Enum* out) {
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
  void List(std::string_view name, size_t most, const std::function<Status(JsonValue, std::string)>& read);
  /// Calls `read` for each element, which are objects; the first error in one is this one's. More than `most`:
  /// kLimitExceeded.
  void Objects(std::string_view name, size_t most, const std::function<void(JsonObject&)>& read);
  /// The same for a member that is an object; missing is fine.
  void Inner(std::string_view name, const std::function<void(JsonObject&)>& read);
  /// A member that is an object; none when it is missing, which is an error.
  JsonValue Required(std::string_view name);
  /// The same; missing is fine.
  JsonValue Object(std::string_view name);
  void Require(std::string_view name, bool is_there);
  void RequireList(std::string_view name) { Require(name, failed() || Find(name)); }

  void Fail(ErrorCode code, std::string_view name, std::string_view what);
  void Expected(std::string_view name, std::string_view what);
  void Fail(Error error);
  void Check(Status status);
  bool failed() const { return error_.has_value(); }
  Status status() const;
  std::string Path(std::string_view name) const;

  static constexpr size_t kTextBytes = 16 * 1024;

 private:
  JsonValue Find(std::string_view name) const { return failed() ? JsonValue() : object_.Known(name); }
  void ReadObject(JsonValue value, std::string path, const std::function<void(JsonObject&)>& read);
  bool ReadInt(std::string_view name, int64_t least, int64_t most, int64_t* out);

  JsonValue object_;
  std::string path_;
  std::optional<Error> error_;
};

constexpr int64_t kAnyInt = std::numeric_limits<int64_t>::max();

/// Characters of `Word`: letters, digits, and those of `also`.
bool IsWord(std::string_view text, std::string_view also);

}  // namespace lockstep
