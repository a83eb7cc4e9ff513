#include "control/discovery/json_value.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>

namespace lockstep::control {

Result<rapidjson::Document> ParseCommandJson(std::string_view text, std::string_view what) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag>(text.data(), text.size());
  if (document.HasParseError()) {
    return Error{
        .code = ErrorCode::kCorruptData,
        .message = fmt::format("{} is not JSON: {}", what, rapidjson::GetParseError_En(document.GetParseError())),
        .byte_offset = document.GetErrorOffset()};
  }
  return document;
}

const rapidjson::Value* FindValue(const rapidjson::Value& from, std::initializer_list<std::string_view> path) {
  const rapidjson::Value* value = &from;
  for (const std::string_view name : path) {
    if (!value->IsObject()) return nullptr;
    const auto member =
        value->FindMember(rapidjson::Value(rapidjson::StringRef(name.data(), static_cast<unsigned>(name.size()))));
    if (member == value->MemberEnd()) return nullptr;
    value = &member->value;
  }
  return value;
}

std::string FindText(const rapidjson::Value& from, std::initializer_list<std::string_view> path) {
  const rapidjson::Value* value = FindValue(from, path);
  return value != nullptr && value->IsString() ? std::string(value->GetString(), value->GetStringLength())
                                               : std::string();
}

}  // namespace lockstep::control
