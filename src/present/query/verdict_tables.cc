#include <fmt/format.h>

#include "analysis/finding.h"
#include "present/query/row_table.h"
#include "present/query/tables.h"
#include "present/report/json_stream.h"

namespace lockstep::query {
namespace {

using analysis::Finding;
using model::LedgerEntry;
using Type = ColumnType;

// An array as JSON text: what `write` adds to it.
template <typename Write>
std::string JsonArray(Write write) {
  report::JsonRow row;
  row.Key("").StartArray();
  write(row);
  row.EndArray();
  const std::string_view object = row.Finish();  // {"":[...]}
  return std::string(object.substr(4, object.size() - 5));
}

std::vector<Field<Finding>> FindingFields() {
  using Row = Finding;
  return {
      {{"id", Type::kText, "",
        "Stable name: `straggler`, `exposed_communication`, `host_bound`, ... (metrics.md#findings).", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(row.id); }},
      {{"severity", Type::kText, "", "`info`, `warning` or `critical`.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(analysis::FindingSeverityName(row.severity)); }},
      {{"ranks", Type::kJson, "", "Ranks concerned, worst first; `[]` = the whole job.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Copy(fmt::format("[{}]", fmt::join(row.ranks, ","))); }},
      {{"title", Type::kText, "", "One sentence.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(row.title); }},
      {{"evidence", Type::kJson, "", "The numbers behind it: `name`, `value`, `text`.", ""},
       [](const Source&, const Row& row, CellOut& out) {
         out.Copy(JsonArray([&](report::JsonRow& json) {
           for (const analysis::Evidence& evidence : row.evidence) {
             json.StartObject().Key("name").Text(evidence.name).Key("value").Double(evidence.value);
             json.Key("text").Text(evidence.text).EndObject();
           }
         }));
       }},
      {{"advice", Type::kJson, "", "What to do, first thing first.", ""},
       [](const Source&, const Row& row, CellOut& out) {
         out.Copy(JsonArray([&](report::JsonRow& json) {
           for (const std::string& advice : row.advice) json.Text(advice);
         }));
       }},
      {{"gain_ns_per_step", Type::kInteger, "ns",
        "Upper bound on what the fix saves per step; per window without steps.", "not known"},
       [](const Source&, const Row& row, CellOut& out) { out.Optional(row.gain_ns_per_step); }},
      {{"gain_ratio", Type::kReal, "0..1",
        "The same / the step that it was reckoned with: the mean of the ranks', or the simulated one.", "not known"},
       [](const Source&, const Row& row, CellOut& out) { out.Optional(row.gain_ratio); }},
  };
}

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

template <typename Row>
void AddTable(TableList* tables, std::string_view name, std::string_view sentence, std::string_view pass,
              std::vector<Field<Row>> fields, std::function<std::span<const Row>(const Source&)> rows) {
  tables->push_back(std::make_unique<RowTable<Row>>(typename RowTable<Row>::Parts{
      .name = name, .sentence = sentence, .pass = pass, .fields = std::move(fields), .rows = std::move(rows)}));
}

}  // namespace

void AddVerdictTables(TableList* tables) {
  AddTable<Finding>(tables, "findings", "What is wrong, for whom, how that is known, what to do; largest gain first",
                    "all", FindingFields(),
                    [](const Source& source) { return std::span<const Finding>(source.result().findings); });
  AddTable<LedgerEntry>(
      tables, "ledger", "Everything that was repaired, skipped, guessed or refused while reading", "all",
      LedgerFields(), [](const Source& source) { return std::span<const LedgerEntry>(source.run().ledger.entries()); });
}

}  // namespace lockstep::query
