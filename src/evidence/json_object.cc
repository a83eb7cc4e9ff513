#include "evidence/json_object.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>

#include "base/utf8.h"

namespace lockstep::evidence {

Result<rapidjson::Document> ParseJson(std::string_view text) {
  if (text.size() > kMaxJsonBytes) {
    return Error{.code = ErrorCode::kLimitExceeded,
                 .message = fmt::format("{} bytes of JSON; at most {} are read", text.size(), kMaxJsonBytes)};
  }
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  if (document.HasParseError()) {
    return Error{.code = ErrorCode::kCorruptData,
                 .message = fmt::format("no JSON: {}", rapidjson::GetParseError_En(document.GetParseError())),
                 .byte_offset = document.GetErrorOffset()};
  }
  return document;
}

JsonObject::JsonObject(const rapidjson::Value& value, std::string where, std::optional<Error>* error)
    : value_(value.IsObject() ? &value : nullptr), where_(std::move(where)), error_(error) {
  if (value_ == nullptr) Wrong("", "an object");
}

const rapidjson::Value* JsonObject::Find(const char* name) const {
  if (value_ == nullptr) return nullptr;
  const auto member = value_->FindMember(name);
  return member == value_->MemberEnd() || member->value.IsNull() ? nullptr : &member->value;
}

void JsonObject::Wrong(const char* name, const char* expected) const {
  if (*error_) return;
  std::string place = where_ + name;
  if (!place.empty() && place.back() == '.') place.pop_back();
  *error_ = Error{.code = ErrorCode::kCorruptData,
                  .message = fmt::format("{}: expected {}", place.empty() ? "document" : place, expected)};
}

void JsonObject::TooMany(const char* name, size_t count, size_t limit) const {
  if (*error_) return;
  *error_ = Error{.code = ErrorCode::kLimitExceeded,
                  .message = fmt::format("{}{}: {} elements; at most {} are read", where_, name, count, limit)};
}

void JsonObject::Read(const char* name, std::string* out) const {
  const rapidjson::Value* value = Find(name);
  if (value == nullptr) return;
  if (!value->IsString()) return Wrong(name, "a text");
  *out = ValidUtf8({value->GetString(), value->GetStringLength()});
}

void JsonObject::Read(const char* name, bool* out) const {
  const rapidjson::Value* value = Find(name);
  if (value == nullptr) return;
  if (!value->IsBool()) return Wrong(name, "true or false");
  *out = value->GetBool();
}

void JsonObject::ReadLetter(const char* name, char* out) const {
  std::string text;
  Read(name, &text);
  if (text.empty()) return;
  if (text.size() != 1) return Wrong(name, "a letter");
  *out = text[0];
}

std::optional<JsonObject> JsonObject::Object(const char* name) const {
  const rapidjson::Value* value = Find(name);
  if (value == nullptr) return std::nullopt;
  return JsonObject(*value, where_ + name + ".", error_);
}

}  // namespace lockstep::evidence
