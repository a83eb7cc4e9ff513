#pragma once

#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>

#include "base/cell.h"
#include "model/ledger.h"

namespace lockstep::report {

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

/// A table's row: one compact object on one line, built here and passed on whole. Texts are made valid UTF-8,
/// numbers that are not finite become null.
class JsonRow {
 public:
  JsonRow() : writer_(buffer_) { writer_.StartObject(); }

  JsonRow& Key(std::string_view name);
  JsonRow& Value(const Cell& cell);
  JsonRow& Null() {
    writer_.Null();
    return *this;
  }
  JsonRow& Bool(bool value) {
    writer_.Bool(value);
    return *this;
  }
  JsonRow& Int(int64_t value) {
    writer_.Int64(value);
    return *this;
  }
  JsonRow& Uint(uint64_t value) {
    writer_.Uint64(value);
    return *this;
  }
  JsonRow& Double(double value);
  JsonRow& Text(std::string_view value);
  /// Null when empty: for facts that a file may not state.
  JsonRow& TextOrNull(std::string_view value) { return value.empty() ? Null() : Text(value); }
  template <typename T>
  JsonRow& Optional(const std::optional<T>& value) {
    return value ? Value(Cell(*value)) : Null();
  }
  JsonRow& StartObject() {
    writer_.StartObject();
    return *this;
  }
  JsonRow& EndObject() {
    writer_.EndObject();
    return *this;
  }
  JsonRow& StartArray() {
    writer_.StartArray();
    return *this;
  }
  JsonRow& EndArray() {
    writer_.EndArray();
    return *this;
  }

  /// One JSON value, as it is.
  JsonRow& Raw(std::string_view json) {
    writer_.RawValue(json.data(), json.size(), rapidjson::kObjectType);
    return *this;
  }

  /// Closes the object; the text lives as long as this.
  std::string_view Finish();

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_;
};

/// The document around the rows.
using JsonDocument = rapidjson::PrettyWriter<BlockStream>;

void WriteKey(JsonDocument& json, std::string_view key);
void WriteRow(JsonDocument& json, JsonRow& row);

/// The member "ledger" that ends every document of ours: docs/json.md#ledger.
void WriteLedger(JsonDocument& json, const model::Ledger& ledger);

}  // namespace lockstep::report
