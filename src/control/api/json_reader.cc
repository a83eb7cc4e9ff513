#include "control/api/json_reader.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"

namespace lockstep::control {
namespace {

// Objects and lists within each other at the deepest place, as far as the text is JSON.
size_t Depth(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Result<rapidjson::Document> ParseJson(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {  // The parser would take it for the end.
    return Error{ErrorCode::kCorruptData, "not JSON: holds a zero byte"};
  }
  if (Depth(text) > kJsonDepth) {
    return Error{ErrorCode::kLimitExceeded, fmt::format("JSON is nested deeper than {}", kJsonDepth)};
  }
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(text.data(), text.size());
  if (document.HasParseError()) {
    return Error{ErrorCode::kCorruptData, fmt::format("not JSON: byte {}: {}", document.GetErrorOffset(),
                                                      rapidjson::GetParseError_En(document.GetParseError()))};
  }
  return document;
}

bool IsWord(std::string_view text, std::string_view also) {
  for (const char c : text) {
    const bool is_plain = IsAlphanumeric(c);
    if (!is_plain && also.find(c) == std::string_view::npos) return false;
  }
  return true;
}

ObjectReader::ObjectReader(const Value& value, std::string path) : path_(std::move(path)) {
  if (value.IsObject()) {
    object_ = &value;
  } else {
    Fail(Error{ErrorCode::kCorruptData, fmt::format("{} is not an object", path_.empty() ? "the document" : path_)});
  }
}

std::string ObjectReader::Path(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

const ObjectReader::Value* ObjectReader::Find(std::string_view name) const {
  if (failed() || object_ == nullptr) return nullptr;
  const auto member =
      object_->FindMember(Value(rapidjson::StringRef(name.data(), static_cast<rapidjson::SizeType>(name.size()))));
  if (member == object_->MemberEnd() || member->value.IsNull()) return nullptr;
  return &member->value;
}

bool ObjectReader::ReadInt(std::string_view name, int64_t least, int64_t most, int64_t* out) {
  const Value* value = Find(name);
  if (value == nullptr) return false;
  if (value->IsUint64() && !value->IsInt64()) {
    Fail(ErrorCode::kInvalidArgument, name, fmt::format("is over {}", most));
    return false;
  }
  if (!value->IsInt64()) {
    Fail(ErrorCode::kCorruptData, name, "is not a whole number");
    return false;
  }
  *out = value->GetInt64();
  if (*out < least || *out > most) {
    Fail(ErrorCode::kInvalidArgument, name, fmt::format("is {}, outside {} .. {}", *out, least, most));
    return false;
  }
  return true;
}

void ObjectReader::Uint(std::string_view name, uint64_t* out) {
  const Value* value = Find(name);
  if (value == nullptr) return;
  if (!value->IsUint64()) return Fail(ErrorCode::kCorruptData, name, "is not a whole number from 0");
  *out = value->GetUint64();
}

void ObjectReader::Bool(std::string_view name, bool* out) {
  const Value* value = Find(name);
  if (value == nullptr) return;
  if (!value->IsBool()) return Fail(ErrorCode::kCorruptData, name, "is neither true nor false");
  *out = value->GetBool();
}

void ObjectReader::Text(std::string_view name, std::string* out, size_t most_bytes) {
  const Value* value = Find(name);
  if (value == nullptr) return;
  if (!value->IsString()) return Fail(ErrorCode::kCorruptData, name, "is not a string");
  // The parser lets an escaped half of a surrogate pair through.
  std::string text = ValidUtf8({value->GetString(), value->GetStringLength()});
  if (text.size() > most_bytes) {
    return Fail(ErrorCode::kInvalidArgument, name, fmt::format("is longer than {} bytes", most_bytes));
  }
  *out = std::move(text);
}

void ObjectReader::Word(std::string_view name, std::string_view also, size_t most_bytes, std::string* out) {
  std::string word;
  Text(name, &word, most_bytes);
  if (failed() || Find(name) == nullptr) return;
  if (!IsWord(word, also)) {
    return Fail(ErrorCode::kInvalidArgument, name, fmt::format("may hold letters, digits and \"{}\" only", also));
  }
  *out = std::move(word);
}

void ObjectReader::List(std::string_view name, size_t most,
                        const std::function<Status(const Value&, std::string)>& read) {
  const Value* value = Find(name);
  if (value == nullptr) return;
  if (!value->IsArray()) return Fail(ErrorCode::kCorruptData, name, "is not a list");
  if (value->Size() > most) return Fail(ErrorCode::kInvalidArgument, name, fmt::format("has over {} elements", most));
  for (rapidjson::SizeType i = 0; i < value->Size() && !failed(); ++i) {
    Check(read((*value)[i], fmt::format("{}[{}]", Path(name), i)));
  }
}

const ObjectReader::Value* ObjectReader::Object(std::string_view name) {
  const Value* value = Find(name);
  if (value != nullptr && !value->IsObject()) {
    Fail(ErrorCode::kCorruptData, name, "is not an object");
    return nullptr;
  }
  return value;
}

const ObjectReader::Value* ObjectReader::Required(std::string_view name) {
  const Value* value = Object(name);
  Require(name, value != nullptr);
  return value;
}

void ObjectReader::Require(std::string_view name, bool is_there) {
  if (!is_there) Fail(ErrorCode::kCorruptData, name, "is missing");
}

void ObjectReader::Fail(ErrorCode code, std::string_view name, std::string_view what) {
  Fail(Error{code, fmt::format("{} {}", Path(name), what)});
}

void ObjectReader::Fail(Error error) {
  if (!error_) error_ = std::move(error);
}

void ObjectReader::Check(Status status) {
  if (!status) Fail(std::move(status).error());
}

Status ObjectReader::status() const {
  if (error_) return *error_;
  return {};
}

}  // namespace lockstep::control
