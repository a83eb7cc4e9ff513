#include "ingest/perfetto/annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "ingest/perfetto/wire_format.h"

namespace lockstep::ingest::perfetto {
namespace {

constexpr int kDeepest = 16;
constexpr size_t kLongestText = size_t{1} << 20;

// Numbers of DebugAnnotation's fields: docs/formats/perfetto.md.
enum : uint32_t {
  kNameIid = 1,
  kBool = 2,
  kUint = 3,
  kInt = 4,
  kDouble = 5,
  kString = 6,
  kPointer = 7,
  kLegacyJson = 9,
  kName = 10,
  kDictEntries = 11,
  kArrayValues = 12,
  kStringIid = 17,
};

struct Value {
  std::string_view name;
  std::string text;
  ValueKind kind = ValueKind::kNull;
};

/// JSON text of a value inside a list or dictionary.
void AppendNested(const Value& value, std::string* out) {
  if (value.kind != ValueKind::kString) {
    out->append(value.text);
    return;
  }
  out->push_back('"');
  for (const char c : value.text) {
    if (c == '"' || c == '\\') out->push_back('\\');
    out->push_back(c);
  }
  out->push_back('"');
}

std::optional<Value> ReadValue(std::string_view message, const SequenceState& state, int depth) {
  if (depth > kDeepest) return std::nullopt;
  Value value;
  std::string list;
  std::string dictionary;
  FieldWalker fields(message);
  while (fields.Next()) {
    switch (fields.number()) {
      case kNameIid:
        if (const std::string* name = state.arg_names.Find(fields.value())) value.name = *name;
        break;
      case kName: value.name = fields.text(); break;
      case kBool: value = {value.name, fields.value() != 0 ? "true" : "false", ValueKind::kTrue}; break;
      case kUint:
      case kPointer: value = {value.name, fmt::format("{}", fields.value()), ValueKind::kNumber}; break;
      case kInt: value = {value.name, fmt::format("{}", fields.signed_value()), ValueKind::kNumber}; break;
      case kDouble: value = {value.name, fmt::format("{}", fields.double_value()), ValueKind::kNumber}; break;
      case kString: value = {value.name, std::string(fields.text()), ValueKind::kString}; break;
      case kLegacyJson: value = {value.name, std::string(fields.text()), ValueKind::kObject}; break;
      case kStringIid:
        if (const std::string* text = state.arg_values.Find(fields.value()))
          value = {value.name, *text, ValueKind::kString};
        break;
      case kArrayValues:
      case kDictEntries: {
        const auto element = ReadValue(fields.text(), state, depth + 1);
        if (!element) return std::nullopt;
        const bool in_list = fields.number() == kArrayValues;
        std::string& into = in_list ? list : dictionary;
        if (into.size() > kLongestText) break;
        into += into.empty() ? (in_list ? "[" : "{") : ", ";
        if (!in_list) {
          AppendNested({{}, std::string(element->name), ValueKind::kString}, &into);
          into += ": ";
        }
        AppendNested(*element, &into);
        break;
      }
      default: break;
    }
  }
  if (fields.broken()) return std::nullopt;
  if (!list.empty()) value = {value.name, list + "]", ValueKind::kArray};
  if (!dictionary.empty()) value = {value.name, dictionary + "}", ValueKind::kObject};
  return value;
}

}  // namespace

void Annotations::Clear() {
  fields_.clear();
  text_count_ = 0;
}

std::string_view Annotations::Keep(std::string text) {
  if (text_count_ == texts_.size()) texts_.emplace_back();
  texts_[text_count_] = std::move(text);
  return texts_[text_count_++];
}

bool Annotations::Add(std::string_view message, const SequenceState& state) {
  auto value = ReadValue(message, state, 0);
  if (!value) return false;
  if (value->name.empty()) return true;
  AddText(value->name, Keep(std::move(value->text)), value->kind);
  return true;
}

void Annotations::AddText(std::string_view key, std::string_view value, ValueKind kind) {
  // Not "escaped": the text is as it is meant.
  fields_.push_back({.key = key, .raw = value, .kind = kind, .in_args = true, .escaped = false});
}

const Field* Annotations::Find(std::string_view key) const {
  const auto found = std::find_if(fields_.begin(), fields_.end(), [&](const Field& field) { return field.key == key; });
  return found == fields_.end() ? nullptr : &*found;
}

}  // namespace lockstep::ingest::perfetto
