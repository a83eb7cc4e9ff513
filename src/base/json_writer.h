#pragma once

#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/utf8.h"

namespace lockstep {

/// RapidJSON's output stream over a std::ostream, in blocks.
class BlockStream {
 public:
  using Ch = char;  // the name RapidJSON asks for
  explicit BlockStream(std::ostream& out) : out_(out) {}
  ~BlockStream() { Flush(); }
  BlockStream(const BlockStream&) = delete;
  BlockStream& operator=(const BlockStream&) = delete;
  void Put(char c) {
    if (used_ == sizeof(block_)) Flush();
    block_[used_++] = c;
  }
  void Flush() {
    out_.write(block_, static_cast<std::streamsize>(used_));
    used_ = 0;
  }

 private:
  std::ostream& out_;
  size_t used_ = 0;
  char block_[1 << 16];
};

/// What all writers of JSON have: values in their order, each call for one, behind a key where an object is open.
/// Texts are made valid UTF-8, numbers that are not finite become null. `Self` is the class that derives from this,
/// `Out` what RapidJSON writes into, `Rapid` its writer.
template <typename Self, typename Out, typename Rapid>
class JsonCalls {
 public:
  Self& StartObject() { return writer_.StartObject(), self(); }
  Self& EndObject() { return writer_.EndObject(), self(); }
  Self& StartArray() { return writer_.StartArray(), self(); }
  Self& EndArray() { return writer_.EndArray(), self(); }
  Self& Key(std::string_view name) {
    return writer_.Key(name.data(), static_cast<rapidjson::SizeType>(name.size())), self();
  }
  Self& Null() { return writer_.Null(), self(); }
  Self& Bool(bool value) { return writer_.Bool(value), self(); }
  Self& Int(int64_t value) { return writer_.Int64(value), self(); }
  Self& Uint(uint64_t value) { return writer_.Uint64(value), self(); }
  Self& Double(double value) { return std::isfinite(value) ? writer_.Double(value) : writer_.Null(), self(); }
  Self& Text(std::string_view value) {
    const std::string valid = ValidUtf8(value);
    return writer_.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size())), self();
  }
  /// Null when empty: for what may be unknown.
  Self& TextOrNull(std::string_view value) { return value.empty() ? Null() : Text(value); }
  /// Null where there is none.
  template <typename T>
  Self& Optional(const std::optional<T>& value) {
    if (!value) return Null();
    if constexpr (std::is_same_v<T, bool>) {
      return Bool(*value);
    } else if constexpr (std::is_floating_point_v<T>) {
      return Double(*value);
    } else if constexpr (std::is_unsigned_v<T>) {
      return Uint(*value);
    } else if constexpr (std::is_integral_v<T>) {
      return Int(*value);
    } else {
      return Text(*value);
    }
  }
  /// A value that is JSON already.
  Self& Raw(std::string_view json) {
    return writer_.RawValue(json.data(), json.size(), rapidjson::kObjectType), self();
  }

 protected:
  template <typename... Parameters>
  explicit JsonCalls(Parameters&... parameters) : out_(parameters...) {}

  Out out_;
  Rapid writer_{out_};

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

/// One line of JSON in memory.
template <typename Self>
class JsonInMemory : public JsonCalls<Self, rapidjson::StringBuffer, rapidjson::Writer<rapidjson::StringBuffer>> {
 public:
  /// What is written so far; lives as long as this, until the next value.
  std::string_view text() const { return {this->out_.GetString(), this->out_.GetSize()}; }
  std::string Take() const { return std::string(text()); }
};
class JsonWriter : public JsonInMemory<JsonWriter> {};

/// One line of JSON to a stream, whole only when this is gone.
class JsonStream : public JsonCalls<JsonStream, BlockStream, rapidjson::Writer<BlockStream>> {
 public:
  explicit JsonStream(std::ostream& out) : JsonCalls(out) {}
  void EndLine() { out_.Put('\n'); }  ///< Behind the document.
};

/// JSON to a stream, a value or a key a line, each depth indented by `indent` blanks more; whole only when this is
/// gone.
class JsonDocument : public JsonCalls<JsonDocument, BlockStream, rapidjson::PrettyWriter<BlockStream>> {
 public:
  JsonDocument(std::ostream& out, unsigned indent) : JsonCalls(out) { writer_.SetIndent(' ', indent); }
  void EndLine() { out_.Put('\n'); }  ///< Behind the document.
};

/// `text` as JSON's text, quotes and all; made valid UTF-8.
inline std::string JsonQuoted(std::string_view text) { return JsonWriter().Text(text).Take(); }

}  // namespace lockstep
