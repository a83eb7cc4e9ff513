#pragma once

#include <ostream>
#include <string_view>

#include "base/cell_json.h"
#include "base/json_writer.h"
#include "model/ledger.h"

namespace lockstep::report {

/// A table's row: one compact object on one line, built here and passed on whole.
class JsonRow : public JsonInMemory<JsonRow> {
 public:
  JsonRow() { StartObject(); }

  JsonRow& Value(const Cell& cell) { return WriteCell(cell, this), *this; }
  /// Closes the object; the text lives as long as this.
  std::string_view Finish() { return EndObject().text(); }
};

inline void WriteRow(JsonDocument& json, JsonRow& row) { json.Raw(row.Finish()); }

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

/// The member "ledger" that ends every document of ours: docs/json.md#ledger.
void WriteLedger(JsonDocument& json, const model::Ledger& ledger);

}  // namespace lockstep::report
