#include "base/json_value.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

namespace lockstep {
namespace {

// Whether some place lies within more objects and lists, as far as the text is JSON.
bool IsDeeper(std::string_view text, size_t most) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > most) return true;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}

template <unsigned kFlags>
Result<JsonTree> Parse(rapidjson::MemoryStream& stream) {
  auto document = std::make_unique<rapidjson::Document>();
  document->ParseStream<kFlags | rapidjson::kParseIterativeFlag, rapidjson::UTF8<>>(stream);
  if (!document->HasParseError()) return JsonTree(std::move(document));
  return Error{.code = ErrorCode::kCorruptData,
               .message = rapidjson::GetParseError_En(document->GetParseError()),
               .byte_offset = document->GetErrorOffset()};
}

}  // namespace

JsonTree::JsonTree(std::unique_ptr<rapidjson::Document> document) : document_(std::move(document)) {}
JsonTree::JsonTree(JsonTree&&) noexcept = default;
JsonTree& JsonTree::operator=(JsonTree&&) noexcept = default;
JsonTree::~JsonTree() = default;

JsonValue JsonTree::root() const { return JsonValue(document_.get()); }

Result<JsonTree> ParseJson(std::string_view text, const JsonOptions& options) {
  if (text.size() > options.most_bytes) {
    return Error{.code = ErrorCode::kLimitExceeded,
                 .message = fmt::format("{} bytes of JSON; at most {} are read", text.size(), options.most_bytes)};
  }
  if (options.most_depth < text.size() && IsDeeper(text, options.most_depth)) {
    return Error{.code = ErrorCode::kLimitExceeded,
                 .message = fmt::format("JSON is nested deeper than {}", options.most_depth)};
  }
  rapidjson::MemoryStream stream(text.data(), text.size());
  constexpr unsigned kChecks = rapidjson::kParseValidateEncodingFlag;
  constexpr unsigned kAsTexts = rapidjson::kParseNumbersAsStringsFlag;
  if (options.numbers_as_texts)
    return options.checks_encoding ? Parse<kChecks | kAsTexts>(stream) : Parse<kAsTexts>(stream);
  return options.checks_encoding ? Parse<kChecks>(stream) : Parse<0>(stream);
}

Result<JsonTree> TakeJson(std::string_view* text) {
  rapidjson::MemoryStream stream(text->data(), text->size());
  Result<JsonTree> tree = Parse<rapidjson::kParseStopWhenDoneFlag | rapidjson::kParseValidateEncodingFlag>(stream);
  if (tree) text->remove_prefix(stream.Tell());
  return tree;
}

bool JsonValue::IsNull() const { return value_ != nullptr && value_->IsNull(); }
bool JsonValue::IsObject() const { return value_ != nullptr && value_->IsObject(); }
bool JsonValue::IsArray() const { return value_ != nullptr && value_->IsArray(); }

std::optional<std::string_view> JsonValue::Text() const {
  if (value_ == nullptr || !value_->IsString()) return std::nullopt;
  return std::string_view(value_->GetString(), value_->GetStringLength());
}

std::optional<bool> JsonValue::Bool() const {
  if (value_ == nullptr || !value_->IsBool()) return std::nullopt;
  return value_->GetBool();
}

std::optional<double> JsonValue::Number() const {
  if (value_ == nullptr || !value_->IsNumber()) return std::nullopt;
  return value_->GetDouble();
}

std::optional<int64_t> JsonValue::Int() const {
  if (value_ == nullptr || !value_->IsInt64()) return std::nullopt;
  return value_->GetInt64();
}

std::optional<uint64_t> JsonValue::Uint() const {
  if (value_ == nullptr || !value_->IsUint64()) return std::nullopt;
  return value_->GetUint64();
}

JsonValue JsonValue::operator[](std::string_view name) const {
  if (!IsObject()) return {};
  const auto member = value_->FindMember(
      rapidjson::Value(rapidjson::StringRef(name.data(), static_cast<rapidjson::SizeType>(name.size()))));
  return member == value_->MemberEnd() ? JsonValue() : JsonValue(&member->value);
}

JsonValue JsonValue::At(std::initializer_list<std::string_view> path) const {
  JsonValue value = *this;
  for (const std::string_view name : path) value = value[name];
  return value;
}

JsonValue JsonValue::Known(std::string_view name) const {
  const JsonValue member = (*this)[name];
  return member.IsNull() ? JsonValue() : member;
}

size_t JsonValue::size() const { return IsObject() ? value_->MemberCount() : IsArray() ? value_->Size() : 0; }

JsonValue JsonValue::operator[](size_t i) const { return JsonValue(&(*value_)[static_cast<rapidjson::SizeType>(i)]); }

std::pair<std::string_view, JsonValue> JsonValue::Member(size_t i) const {
  const auto member = value_->MemberBegin() + static_cast<std::ptrdiff_t>(i);
  return {{member->name.GetString(), member->name.GetStringLength()}, JsonValue(&member->value)};
}

JsonElements JsonValue::elements() const { return JsonElements(*this, IsArray() ? size() : 0); }
JsonMembers JsonValue::members() const { return JsonMembers(*this, IsObject() ? size() : 0); }

std::string JsonValue::ToJson() const {
  if (value_ == nullptr) return "";
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  value_->Accept(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace lockstep
