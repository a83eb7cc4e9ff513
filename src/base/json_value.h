#pragma once

#include <rapidjson/fwd.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace lockstep {

class JsonElements;
class JsonMembers;

/// A value of a JSON text, or none. A query on a value of another type, or on none, gives none too, so a path can be
/// followed without a check at each step. A value to pass by value; it lives as long as its JsonTree.
class JsonValue {
 public:
  JsonValue() = default;
  explicit JsonValue(const rapidjson::Value* value) : value_(value) {}
  explicit operator bool() const { return value_ != nullptr; }

  bool IsNull() const;  ///< JSON's null, which is a value.
  bool IsObject() const;
  bool IsArray() const;
  bool IsText() const { return Text().has_value(); }

  std::optional<std::string_view> Text() const;
  std::optional<bool> Bool() const;
  std::optional<double> Number() const;
  /// Whole numbers as such that fit: 3.0 is none.
  std::optional<int64_t> Int() const;
  std::optional<uint64_t> Uint() const;
  std::optional<int32_t> Int32() const {
    const std::optional<int64_t> value = Int();
    if (!value || *value < std::numeric_limits<int32_t>::min() || *value > std::numeric_limits<int32_t>::max())
      return {};
    return static_cast<int32_t>(*value);
  }
  std::string TextOrEmpty() const { return std::string(Text().value_or(std::string_view())); }

  /// The first member of that name.
  JsonValue operator[](std::string_view name) const;
  /// Member of member: where `path` leads to.
  JsonValue At(std::initializer_list<std::string_view> path) const;
  /// operator[], none for null too: absent and unknown are the same.
  JsonValue Known(std::string_view name) const;

  /// Of an object or an array, else 0.
  size_t size() const;
  /// Of an array; `i` below size().
  JsonValue operator[](size_t i) const;
  /// Name and value of an object's member; `i` below size().
  std::pair<std::string_view, JsonValue> Member(size_t i) const;

  /// Of an array; else nothing.
  JsonElements elements() const;
  /// Names and values of an object, in the text's order; else nothing.
  JsonMembers members() const;

  /// The value as a JSON text without blanks. Recurses by the depth of the value.
  std::string ToJson() const;

 private:
  const rapidjson::Value* value_ = nullptr;
};

/// What a range-based for goes over: `Range`'s At() of each index.
template <typename Range>
class JsonRange {
 public:
  explicit JsonRange(JsonValue of, size_t count) : of_(of), count_(count) {}

  class Iterator {
   public:
    Iterator(JsonValue of, size_t i) : of_(of), i_(i) {}
    auto operator*() const { return Range::At(of_, i_); }
    Iterator& operator++() { return ++i_, *this; }
    bool operator!=(const Iterator& other) const { return i_ != other.i_; }

   private:
    JsonValue of_;
    size_t i_;
  };
  Iterator begin() const { return {of_, 0}; }
  Iterator end() const { return {of_, count_}; }

 private:
  JsonValue of_;
  size_t count_;
};

class JsonElements : public JsonRange<JsonElements> {
 public:
  using JsonRange::JsonRange;
  static JsonValue At(JsonValue of, size_t i) { return of[i]; }
};

class JsonMembers : public JsonRange<JsonMembers> {
 public:
  using JsonRange::JsonRange;
  static std::pair<std::string_view, JsonValue> At(JsonValue of, size_t i) { return of.Member(i); }
};

/// A JSON text that was read; owns the values.
class JsonTree {
 public:
  explicit JsonTree(std::unique_ptr<rapidjson::Document> document);
  JsonTree(JsonTree&&) noexcept;
  JsonTree& operator=(JsonTree&&) noexcept;
  ~JsonTree();
  JsonValue root() const;

 private:
  std::unique_ptr<rapidjson::Document> document_;
};

struct JsonOptions {
  size_t most_bytes = std::numeric_limits<size_t>::max();
  size_t most_depth = std::numeric_limits<size_t>::max();  ///< Objects and lists within each other.
  bool checks_encoding = false;                            ///< Invalid UTF-8 is an error.
  bool numbers_as_texts = false;                           ///< Numbers are kept as the texts that they are written as.
};

/// Reads a whole text. The parser keeps its own stack, so depth costs no call stack. Errors: kLimitExceeded;
/// kCorruptData with the parser's words and the byte at which the text stops being JSON.
Result<JsonTree> ParseJson(std::string_view text, const JsonOptions& options = {});

/// Reads the value that `text` begins with and takes it off; what follows may be anything. The encoding is checked.
/// Errors as of ParseJson; `text` stays then.
Result<JsonTree> TakeJson(std::string_view* text);

}  // namespace lockstep
