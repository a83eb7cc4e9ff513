#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "base/result.h"

namespace lockstep::evidence {

constexpr size_t kMaxJsonBytes = size_t{128} << 20;

/// Parses without recursion, so that depth costs no stack. Errors: kLimitExceeded, kCorruptData with the place.
Result<rapidjson::Document> ParseJson(std::string_view text);

/// An object's fields, each read into a variable when it is there and not null. The first field of a wrong type is kept
/// as the error; reading goes on, so that a caller looks once, at the end.
class JsonObject {
 public:
  /// `where` names the object in errors ("stacks[3]"). An error when the value is not an object.
  JsonObject(const rapidjson::Value& value, std::string where, std::optional<Error>* error);

  void Read(const char* name, std::string* out) const;  ///< Invalid UTF-8 is made valid.
  void Read(const char* name, bool* out) const;
  void ReadLetter(const char* name, char* out) const;
  template <typename T>
  requires std::is_integral_v<T>
  void Read(const char* name, T* out) const {
    const rapidjson::Value* value = Find(name);
    if (value == nullptr) return;
    if constexpr (std::is_unsigned_v<T>) {
      if (value->IsUint64() && value->GetUint64() <= std::numeric_limits<T>::max()) {
        *out = static_cast<T>(value->GetUint64());
        return;
      }
    } else {
      if (value->IsInt64() && value->GetInt64() >= std::numeric_limits<T>::min() &&
          value->GetInt64() <= std::numeric_limits<T>::max()) {
        *out = static_cast<T>(value->GetInt64());
        return;
      }
    }
    Wrong(name, "an integer in its range");
  }
  template <typename T>
  void Read(const char* name, std::optional<T>* out) const {
    if (Find(name) == nullptr) return;
    T value{};
    Read(name, &value);
    *out = value;
  }
  /// Calls `read` with each element, itself an object, at most `limit` of them.
  template <typename ReadElement>
  void ReadArray(const char* name, size_t limit, const ReadElement& read) const {
    const rapidjson::Value* value = Find(name);
    if (value == nullptr) return;
    if (!value->IsArray()) return Wrong(name, "an array");
    if (value->Size() > limit) return TooMany(name, value->Size(), limit);
    for (rapidjson::SizeType i = 0; i < value->Size() && !*error_; ++i) {
      read(JsonObject((*value)[i], where_ + name + "[" + std::to_string(i) + "].", error_));
    }
  }
  /// The object of that name, if there is one.
  std::optional<JsonObject> Object(const char* name) const;
  void Wrong(const char* name, const char* expected) const;

 private:
  /// Null when absent or JSON's null.
  const rapidjson::Value* Find(const char* name) const;
  void TooMany(const char* name, size_t count, size_t limit) const;

  const rapidjson::Value* value_;
  std::string where_;
  std::optional<Error>* error_;
};

}  // namespace lockstep::evidence
