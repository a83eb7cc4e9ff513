#include "base/json_object.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"

namespace lockstep {

bool IsWord(std::string_view text, std::string_view also) {
  for (const char c : text) {
    const bool is_plain = IsAlphanumeric(c);
    if (!is_plain && also.find(c) == std::string_view::npos) return false;
  }
  return true;
}

JsonObject::JsonObject(JsonValue value, std::string path) : object_(value), path_(std::move(path)) {
  if (value.IsObject()) return;
  Fail(Error{ErrorCode::kCorruptData, fmt::format("{} is not an object", path_.empty() ? "the document" : path_)});
}

std::string JsonObject::Path(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

bool JsonObject::ReadInt(std::string_view name, int64_t least, int64_t most, int64_t* out) {
  const JsonValue value = Find(name);
  if (!value) return false;
  const std::optional<int64_t> number = value.Int();
  if (!number && value.Uint()) {
    Fail(ErrorCode::kInvalidArgument, name, fmt::format("is over {}", most));
    return false;
  }
  if (!number) {
    Fail(ErrorCode::kCorruptData, name, "is not a whole number");
    return false;
  }
  if (*number < least || *number > most) {
    Fail(ErrorCode::kInvalidArgument, name, fmt::format("is {}, outside {} .. {}", *number, least, most));
    return false;
  }
  *out = *number;
  return true;
}

void JsonObject::Read(std::string_view name, bool* out) {
  const JsonValue value = Find(name);
  if (!value) return;
  const std::optional<bool> truth = value.Bool();
  if (!truth) return Expected(name, "true or false");
  *out = *truth;
}

void JsonObject::Read(std::string_view name, std::string* out) {
  const JsonValue value = Find(name);
  if (!value) return;
  const std::optional<std::string_view> text = value.Text();
  if (!text) return Expected(name, "a text");
  *out = ValidUtf8(*text);
}

void JsonObject::Uint(std::string_view name, uint64_t* out) {
  const JsonValue value = Find(name);
  if (!value) return;
  const std::optional<uint64_t> number = value.Uint();
  if (!number) return Fail(ErrorCode::kCorruptData, name, "is not a whole number from 0");
  *out = *number;
}

void JsonObject::Bool(std::string_view name, bool* out) {
  const JsonValue value = Find(name);
  if (!value) return;
  const std::optional<bool> truth = value.Bool();
  if (!truth) return Fail(ErrorCode::kCorruptData, name, "is neither true nor false");
  *out = *truth;
}

void JsonObject::Number(std::string_view name, double most, double* out) {
  const JsonValue value = Find(name);
  if (!value) return;
  const std::optional<double> number = value.Number();
  if (!number || !(std::abs(*number) <= most)) {
    return Fail(ErrorCode::kCorruptData, name, fmt::format("is not a number up to {}", most));
  }
  *out = *number;
}

void JsonObject::Text(std::string_view name, std::string* out, size_t most_bytes) {
  const JsonValue value = Find(name);
  if (!value) return;
  const std::optional<std::string_view> read = value.Text();
  if (!read) return Fail(ErrorCode::kCorruptData, name, "is not a string");
  // The parser lets an escaped half of a surrogate pair through.
  std::string text = ValidUtf8(*read);
  if (text.size() > most_bytes) {
    return Fail(ErrorCode::kInvalidArgument, name, fmt::format("is longer than {} bytes", most_bytes));
  }
  *out = std::move(text);
}

void JsonObject::Word(std::string_view name, std::string_view also, size_t most_bytes, std::string* out) {
  std::string word;
  Text(name, &word, most_bytes);
  if (failed() || !Find(name)) return;
  if (!IsWord(word, also)) {
    return Fail(ErrorCode::kInvalidArgument, name, fmt::format("may hold letters, digits and \"{}\" only", also));
  }
  *out = std::move(word);
}

void JsonObject::List(std::string_view name, size_t most, const std::function<Status(JsonValue, std::string)>& read) {
  const JsonValue value = Find(name);
  if (!value) return;
  if (!value.IsArray()) return Fail(ErrorCode::kCorruptData, name, "is not a list");
  if (value.size() > most) return Fail(ErrorCode::kInvalidArgument, name, fmt::format("has over {} elements", most));
  for (size_t i = 0; i < value.size() && !failed(); ++i) {
    Check(read(value[i], fmt::format("{}[{}]", Path(name), i)));
  }
}

void JsonObject::ReadObject(JsonValue value, std::string path, const std::function<void(JsonObject&)>& read) {
  if (!value.IsObject()) return Fail(Error{ErrorCode::kCorruptData, path + ": expected an object"});
  JsonObject object(value, std::move(path));
  read(object);
  Check(object.status());
}

void JsonObject::Objects(std::string_view name, size_t most, const std::function<void(JsonObject&)>& read) {
  const JsonValue value = Find(name);
  if (!value) return;
  if (!value.IsArray()) return Expected(name, "an array");
  if (value.size() > most) {
    return Fail(Error{ErrorCode::kLimitExceeded,
                      fmt::format("{}: {} elements; at most {} are read", Path(name), value.size(), most)});
  }
  for (size_t i = 0; i < value.size() && !failed(); ++i) {
    ReadObject(value[i], fmt::format("{}[{}]", Path(name), i), read);
  }
}

void JsonObject::Inner(std::string_view name, const std::function<void(JsonObject&)>& read) {
  if (const JsonValue value = Find(name)) ReadObject(value, Path(name), read);
}

JsonValue JsonObject::Object(std::string_view name) {
  const JsonValue value = Find(name);
  if (!value || value.IsObject()) return value;
  Fail(ErrorCode::kCorruptData, name, "is not an object");
  return {};
}

JsonValue JsonObject::Required(std::string_view name) {
  const JsonValue value = Object(name);
  Require(name, static_cast<bool>(value));
  return value;
}

void JsonObject::Require(std::string_view name, bool is_there) {
  if (!is_there) Fail(ErrorCode::kCorruptData, name, "is missing");
}

void JsonObject::Fail(ErrorCode code, std::string_view name, std::string_view what) {
  Fail(Error{code, fmt::format("{} {}", Path(name), what)});
}

void JsonObject::Expected(std::string_view name, std::string_view what) {
  Fail(Error{ErrorCode::kCorruptData, fmt::format("{}: expected {}", Path(name), what)});
}

void JsonObject::Fail(Error error) {
  if (!error_) error_ = std::move(error);
}

void JsonObject::Check(Status status) {
  if (!status) Fail(std::move(status).error());
}

Status JsonObject::status() const {
  if (error_) return *error_;
  return {};
}

}  // namespace lockstep
