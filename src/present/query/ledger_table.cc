#include "present/query/row_table.h"
#include "present/query/tables.h"

namespace lockstep::query {
namespace {

using model::LedgerEntry;
using Type = ColumnType;

std::vector<Field<LedgerEntry>> LedgerFields() {
  using Row = LedgerEntry;
  return {
      {{"code", Type::kText, "", "Stable name (json.md, codes of the ledger).", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(row.code); }},
      {{"severity", Type::kText, "", "`info`, `warning` or `error`; an `error` means that something is missing.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(model::SeverityName(row.severity)); }},
      {{"source", Type::kText, "", "File, and member of an archive.", "concerns the whole run"},
       [](const Source&, const Row& row, CellOut& out) { out.StaticOrNull(row.source); }},
      {{"rank", Type::kInteger, "", "Rank.", "not known, or the whole run"},
       [](const Source&, const Row& row, CellOut& out) { out.Optional(row.rank); }},
      {{"byte_offset", Type::kInteger, "bytes", "Where it was seen first, in the unpacked JSON.", "no place"},
       [](const Source&, const Row& row, CellOut& out) { out.Optional(row.byte_offset); }},
      {{"count", Type::kInteger, "count", "How often.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Count(row.count); }},
      {{"message", Type::kText, "", "What was seen.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(row.message); }},
      {{"advice", Type::kText, "", "What to do.", "nothing to do"},
       [](const Source&, const Row& row, CellOut& out) { out.StaticOrNull(row.advice); }},
  };
}

}  // namespace

std::unique_ptr<Table> MakeLedgerTable() {
  return std::make_unique<RowTable<LedgerEntry>>(RowTable<LedgerEntry>::Parts{
      .name = "ledger",
      .sentence = "Everything that was repaired, skipped, guessed or refused while reading",
      .pass = "all",
      .fields = LedgerFields(),
      .rows = [](const Source& source) { return std::span<const LedgerEntry>(source.run().ledger.entries()); }});
}

}  // namespace lockstep::query
