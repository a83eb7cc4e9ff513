#pragma once

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

/// The member "ledger" that ends every document of ours: docs/json.md#ledger.
void WriteLedger(JsonDocument& json, const model::Ledger& ledger);

}  // namespace lockstep::report
