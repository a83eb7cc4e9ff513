#include "node/control/api/json_fields.h"

#include "base/utf8.h"

namespace lockstep::control {

Status CheckText(JsonValue element, const std::string& where) {
  if (element.IsText()) return {};
  return Error{ErrorCode::kCorruptData, where + " is not a string"};
}

void FieldWriter::Texts(std::string_view name, size_t /*most*/, const std::vector<std::string>* values,
                        const ElementCheck& /*check*/) {
  json_.Key(name).StartArray();
  for (const std::string& value : *values) json_.Text(value);
  json_.EndArray();
}

void FieldReader::Texts(std::string_view name, size_t most, std::vector<std::string>* values,
                        const ElementCheck& check) {
  values->clear();
  List(name, most, [&](JsonValue element, const std::string& where) -> Status {
    RETURN_IF_ERROR(check(element, where));
    values->push_back(ValidUtf8(*element.Text()));
    return {};
  });
}

void FieldWriter::Numbers(std::string_view name, size_t /*most*/, int32_t /*least*/,
                          const std::vector<int32_t>* values) {
  json_.Key(name).StartArray();
  for (const int32_t value : *values) json_.Int(value);
  json_.EndArray();
}

void FieldReader::Numbers(std::string_view name, size_t most, int32_t least, std::vector<int32_t>* values) {
  values->clear();
  List(name, most, [&](JsonValue element, const std::string& where) -> Status {
    const std::optional<int32_t> number = element.Int32();
    if (!number) return Error{ErrorCode::kCorruptData, where + " is not a whole number of 32 bits"};
    if (*number < least) return Error{ErrorCode::kInvalidArgument, where + " is below " + std::to_string(least)};
    values->push_back(*number);
    return {};
  });
}

void FieldWriter::Ranks(std::string_view name, const Ranges* values) {
  json_.Key(name).StartArray();
  for (const auto& [first, last] : *values) json_.StartArray().Int(first).Int(last).EndArray();
  json_.EndArray();
}

void FieldReader::Ranks(std::string_view name, Ranges* values) {
  values->clear();
  List(name, kSelected, [&](JsonValue range, const std::string& where) -> Status {
    const bool is_pair = range.IsArray() && range.size() == 2;
    const std::optional<int32_t> first = is_pair ? range[0].Int32() : std::nullopt;
    const std::optional<int32_t> last = is_pair ? range[1].Int32() : std::nullopt;
    if (!first || !last) {
      return Error{ErrorCode::kCorruptData, where + " is not a range of two ranks, first and last"};
    }
    if (*first < 0 || *first > *last) {
      return Error{ErrorCode::kInvalidArgument, where + " does not go up from 0"};
    }
    values->emplace_back(*first, *last);
    return {};
  });
}

}  // namespace lockstep::control
