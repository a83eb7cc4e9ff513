#pragma once

#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/cell_json.h"
#include "base/json_writer.h"
#include "model/ledger.h"

namespace lockstep::report {

/// A table's row: one compact object on one line, built here and passed on whole.
class JsonRow : public JsonInMemory<JsonRow> {
 public:
  JsonRow() { StartObject(); }

  JsonRow& Value(const Cell& cell) { return WriteCell(cell, this), *this; }
  /// An array of numbers or texts.
  template <typename Values>
  JsonRow& List(const Values& values) {
    StartArray();
    for (const auto& value : values) Optional(std::optional(value));
    return EndArray();
  }
  /// An array with an object for each of `items`, whose members `add(item)` adds.
  template <typename Items, typename Add>
  JsonRow& Each(const Items& items, const Add& add) {
    StartArray();
    for (const auto& item : items) {
      StartObject();
      add(item);
      EndObject();
    }
    return EndArray();
  }
  /// Closes the object; the text lives as long as this.
  std::string_view Finish() { return EndObject().text(); }
};

inline void WriteRow(JsonDocument& json, JsonRow& row) { json.Raw(row.Finish()); }

/// The member `key`: an array with a row for each of `items`, as `make_row(row, item)` makes it.
template <typename Items, typename MakeRow>
void WriteTable(JsonDocument& json, std::string_view key, const Items& items, const MakeRow& make_row) {
  json.Key(key).StartArray();
  for (const auto& item : items) {
    JsonRow row;
    make_row(row, item);
    WriteRow(json, row);
  }
  json.EndArray();
}

/// A whole document of ours, flushed. `write_data` writes the value of "data", and the members behind it.
template <typename WriteData>
void WriteDocument(std::ostream& out, std::string_view schema, bool partial, WriteData write_data) {
  {
    JsonDocument json(out, 2);
    json.StartObject().Key("schema").Text(schema).Key("partial").Bool(partial).Key("data");
    write_data(json);
    json.EndObject();
    json.EndLine();
  }
  out.flush();
}

/// One JSON value on one line, as `write(JsonDocument&)` writes it.
template <typename Write>
std::string JsonText(const Write& write) {
  std::ostringstream out;
  {
    JsonDocument json(out, 0);
    write(json);
  }
  return std::move(out).str();
}

/// The member "ledger" that ends every document of ours: docs/json.md#ledger.
void WriteLedger(JsonDocument& json, const model::Ledger& ledger);

}  // namespace lockstep::report
