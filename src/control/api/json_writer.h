#pragma once

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace lockstep::control {

/// One line of JSON, built member by member. Texts are made valid UTF-8: a command line may hold anything.
class JsonText {
 public:
  JsonText& Begin() {
    writer_.StartObject();
    return *this;
  }
  JsonText& End() {
    writer_.EndObject();
    return *this;
  }
  JsonText& BeginList() {
    writer_.StartArray();
    return *this;
  }
  JsonText& EndList() {
    writer_.EndArray();
    return *this;
  }
  JsonText& Key(std::string_view name) {
    writer_.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
    return *this;
  }
  JsonText& Text(std::string_view value) {
    const std::string valid = ValidUtf8(value);
    writer_.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
    return *this;
  }
  JsonText& Bool(bool value) {
    writer_.Bool(value);
    return *this;
  }
  JsonText& Int(int64_t value) {
    writer_.Int64(value);
    return *this;
  }
  JsonText& Uint(uint64_t value) {
    writer_.Uint64(value);
    return *this;
  }
  /// Null where there is none, or none that JSON can say.
  JsonText& NumberOrNull(const std::optional<double>& value) {
    const bool is_there = value && std::isfinite(*value);
    is_there ? writer_.Double(*value) : writer_.Null();
    return *this;
  }
  template <typename T>
  JsonText& IntOrNull(const std::optional<T>& value) {
    value ? writer_.Int64(*value) : writer_.Null();
    return *this;
  }
  /// A value that is JSON already.
  JsonText& Raw(std::string_view json) {
    writer_.RawValue(json.data(), json.size(), rapidjson::kObjectType);
    return *this;
  }
  /// Null when empty: for what may be unknown.
  JsonText& TextOrNull(std::string_view value) {
    if (!value.empty()) return Text(value);
    writer_.Null();
    return *this;
  }

  std::string Take() const { return {buffer_.GetString(), buffer_.GetSize()}; }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_{buffer_};
};

}  // namespace lockstep::control
