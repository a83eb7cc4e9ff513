#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_object.h"
#include "base/json_value.h"
#include "base/json_writer.h"
#include "base/result.h"
#include "node/control/api/capture.h"
#include "node/control/api/parse_json.h"
#include "node/control/api/process.h"

namespace lockstep::control {

// The documents of json.h: the members of a structure stand once, in its `Fields(json, structure)`. FieldWriter writes
// them in that order; FieldReader reads them by name, and it alone minds ranges, lengths and checks. What is missing or
// null leaves the structure as it is, but for lists, which are emptied.

// What a document may hold at most.
constexpr size_t kProcessesOfNode = 65536;
constexpr size_t kCapturesOfNode = 65536;
constexpr size_t kSelected = 65536;  ///< Ranges, pids and ids of a selector, each.

using Ranges = std::vector<std::pair<int32_t, int32_t>>;
/// Whether an element of a list is what it is to be; `where` names it in errors.
using ElementCheck = std::function<Status(JsonValue element, const std::string& where)>;
Status CheckText(JsonValue element, const std::string& where);

template <typename T>
void WriteFields(const T& value, JsonWriter* json);
template <typename T>
Status ReadFields(JsonValue value, std::string path, T* out);

class FieldWriter {
 public:
  static constexpr bool kReads = false;
  explicit FieldWriter(JsonWriter* json) : json_(*json) {}

  template <typename T>
  void Int(std::string_view name, const T* value, int64_t /*least*/ = 0, int64_t /*most*/ = 0) {
    json_.Key(name).Optional(std::optional(*value));
  }
  void Uint(std::string_view name, const uint64_t* value) { json_.Key(name).Uint(*value); }
  void Bool(std::string_view name, const bool* value) { json_.Key(name).Bool(*value); }
  void Text(std::string_view name, const std::string* value, size_t /*most*/ = 0) { json_.Key(name).Text(*value); }
  void TextOrNull(std::string_view name, const std::string* value, size_t /*most*/ = 0) { WriteOnly(name, *value); }
  void Word(std::string_view name, std::string_view /*also*/, size_t /*most*/, const std::string* value) {
    WriteOnly(name, *value);
  }
  void RequiredWord(std::string_view name, std::string_view /*also*/, size_t /*most*/, const std::string* value) {
    Text(name, value);
  }
  template <typename Table, typename Enum>
  void Name(std::string_view name, const Table& table, const Enum* value) {
    json_.Key(name).Text(table.Name(*value));
  }
  template <typename T>
  void Object(std::string_view name, const T* value) {
    json_.Key(name);
    WriteFields(*value, &json_);
  }
  template <typename T>
  void Object(std::string_view name, const std::optional<T>* value) {
    *value ? Object(name, &**value) : WriteOnly(name, "");
  }
  template <typename T>
  void RequiredObject(std::string_view name, const T* value) {
    Object(name, value);
  }
  template <typename T>
  void Objects(std::string_view name, size_t /*most*/, const std::vector<T>* values) {
    json_.Key(name).StartArray();
    for (const T& value : *values) WriteFields(value, &json_);
    json_.EndArray();
  }
  void Texts(std::string_view name, size_t most, const std::vector<std::string>* values,
             const ElementCheck& check = CheckText);
  void Numbers(std::string_view name, size_t most, int32_t least, const std::vector<int32_t>* values);
  void Ranks(std::string_view name, const Ranges* values);

  void WriteOnly(std::string_view name, std::string_view value) { json_.Key(name).TextOrNull(value); }
  void Require(std::string_view /*name*/, bool /*is_there*/) {}
  void Expect(std::string_view /*name*/, bool /*is_right*/, std::string_view /*otherwise*/) {}

 private:
  JsonWriter& json_;
};

/// Of whole numbers, what a variable holds.
template <typename T>
inline constexpr int64_t kMostOf = std::numeric_limits<T>::max();
template <typename T>
inline constexpr int64_t kMostOf<std::optional<T>> = std::numeric_limits<T>::max();

class FieldReader : public JsonObject {
 public:
  static constexpr bool kReads = true;
  using JsonObject::JsonObject;

  /// At most what the variable holds, where nothing else is said.
  template <typename T>
  void Int(std::string_view name, T* value, int64_t least = 0, int64_t most = kMostOf<T>) {
    JsonObject::Int(name, least, most, value);
  }
  void TextOrNull(std::string_view name, std::string* value, size_t most = kTextBytes) { Text(name, value, most); }
  void RequiredWord(std::string_view name, std::string_view also, size_t most, std::string* value) {
    Word(name, also, most, value);
    Require(name, !value->empty());
  }
  template <typename T>
  void Object(std::string_view name, T* value) {
    Member(name, JsonObject::Object(name), value);
  }
  template <typename T>
  void Object(std::string_view name, std::optional<T>* value) {
    if (const JsonValue member = JsonObject::Object(name)) Member(name, member, &value->emplace());
  }
  template <typename T>
  void RequiredObject(std::string_view name, T* value) {
    Member(name, Required(name), value);
  }
  template <typename T>
  void Objects(std::string_view name, size_t most, std::vector<T>* values) {
    values->clear();
    List(name, most, [&](JsonValue element, std::string where) {
      return ReadFields(element, std::move(where), &values->emplace_back());
    });
  }
  void Texts(std::string_view name, size_t most, std::vector<std::string>* values,
             const ElementCheck& check = CheckText);
  void Numbers(std::string_view name, size_t most, int32_t least, std::vector<int32_t>* values);
  void Ranks(std::string_view name, Ranges* values);

  void WriteOnly(std::string_view /*name*/, std::string_view /*value*/) {}
  /// Else kInvalidArgument: the member `otherwise`, "is not a trace's name".
  void Expect(std::string_view name, bool is_right, std::string_view otherwise) {
    if (!is_right) Fail(ErrorCode::kInvalidArgument, name, otherwise);
  }

 private:
  template <typename T>
  void Member(std::string_view name, JsonValue member, T* value) {
    if (member) Check(ReadFields(member, Path(name), value));
  }
};

template <typename T>
void WriteFields(const T& value, JsonWriter* json) {
  json->StartObject();
  FieldWriter writer(json);
  Fields(writer, const_cast<T&>(value));  // NOLINT(cppcoreguidelines-pro-type-const-cast): only a reader changes it.
  json->EndObject();
}

template <typename T>
Status ReadFields(JsonValue value, std::string path, T* out) {
  FieldReader reader(value, std::move(path));
  Fields(reader, *out);
  return reader.status();
}

/// A document of one structure.
template <typename T>
std::string WriteDocument(const T& value) {
  JsonWriter json;
  WriteFields(value, &json);
  return json.Take();
}
template <typename T>
Result<T> ReadDocument(std::string_view json) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseJson(json));
  T value;
  RETURN_IF_ERROR(ReadFields(document.root(), "", &value));
  return value;
}

/// A document of one list: {"captures": [...]}.
template <typename T>
std::string WriteList(std::string_view name, const std::vector<T>& values) {
  JsonWriter json;
  json.StartObject();
  FieldWriter(&json).Objects(name, 0, &values);
  json.EndObject();
  return json.Take();
}
template <typename T>
Result<std::vector<T>> ReadList(std::string_view name, size_t most, std::string_view json) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseJson(json));
  FieldReader reader(document.root(), "");
  std::vector<T> values;
  reader.Objects(name, most, &values);
  reader.RequireList(name);
  RETURN_IF_ERROR(reader.status());
  return values;
}

/// A process within a capture too.
template <typename Json>
void Fields(Json& json, Process& process);

}  // namespace lockstep::control
