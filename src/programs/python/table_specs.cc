#include "programs/python/table_specs.h"

#include "analysis/pass_registry.h"
#include "analysis/table.h"

namespace lockstep::python {
namespace {

ColumnSpec SpecOf(const analysis::TableColumn& column) {
  const std::string name(column.name), unit(column.unit);
  const bool nullable = !column.null.empty();
  switch (column.type) {
    case analysis::ColumnType::kReal: return {name, Kind::kFloat64, unit, nullable};
    case analysis::ColumnType::kText: return {name, Kind::kText, unit, nullable};
    case analysis::ColumnType::kBoolean: return {name, Kind::kBool, unit, nullable};
    case analysis::ColumnType::kIntegers: return {name, Kind::kList, "", false, {{"item", Kind::kInt64, unit, false}}};
    case analysis::ColumnType::kInteger: break;
  }
  return {name, Kind::kInt64, unit, nullable};
}

/// The tables that passes declare for all forms are declared for this one as well.
std::vector<TableSpec> WithDeclaredTables(std::vector<TableSpec> specs) {
  for (const analysis::Table* table : analysis::Tables()) {
    if (table->sql_name.empty()) continue;
    TableSpec& spec = specs.emplace_back();
    spec.name = table->name;
    for (const analysis::TableColumn& column : table->columns) {
      if (column.place != analysis::ColumnPlace::kOnlyInSql) spec.columns.push_back(SpecOf(column));
    }
  }
  return specs;
}

}  // namespace

const std::vector<TableSpec>& TableSpecs() {
  static const std::vector<TableSpec> kSpecs = WithDeclaredTables({
      {"ranks",
       {{"rank", Kind::kInt64},
        {"window", Kind::kInt64},
        {"rank_source", Kind::kText},
        {"world_size", Kind::kInt64, "count", true},
        {"host", Kind::kText, "", true},
        {"device", Kind::kText, "", true},
        {"device_ordinals", Kind::kList, "", false, {{"item", Kind::kInt64, "", false}}},
        {"backend", Kind::kText, "", true},
        {"source", Kind::kText},
        {"event_count", Kind::kInt64, "count"},
        {"json_bytes", Kind::kInt64, "bytes"},
        {"first_ns", Kind::kInt64, "ns, the rank's own clock", true},
        {"last_ns", Kind::kInt64, "ns, the rank's own clock", true}}},
      {"collectives",
       {{"window", Kind::kInt64},
        {"group", Kind::kText},
        {"sequence", Kind::kInt64},
        {"match", Kind::kText},
        {"name", Kind::kText},
        {"bytes", Kind::kInt64, "bytes", true},
        {"group_size", Kind::kInt64, "count", true},
        {"synchronising", Kind::kBool},
        {"complete", Kind::kBool},
        {"ranks", Kind::kList, "", false, {{"item", Kind::kInt64, "", false}}},
        {"arrival_ns", Kind::kList, "ns, aligned clock", false, {{"item", Kind::kInt64, "ns, aligned clock", false}}},
        {"end_ns", Kind::kList, "ns, aligned clock", false, {{"item", Kind::kInt64, "ns, aligned clock", false}}},
        {"wait_ns", Kind::kList, "ns", false, {{"item", Kind::kInt64, "ns", true}}},
        {"duration_ns", Kind::kList, "ns", false, {{"item", Kind::kInt64, "ns", false}}},
        {"missing_ranks", Kind::kList, "", false, {{"item", Kind::kInt64, "", false}}},
        {"last_rank", Kind::kInt64, "", true},
        {"transfer_ns", Kind::kInt64, "ns", true},
        {"algbw_bytes_per_s", Kind::kFloat64, "bytes/s", true},
        {"busbw_bytes_per_s", Kind::kFloat64, "bytes/s", true}}},
      {"stragglers",
       {{"rank", Kind::kInt64},
        {"window", Kind::kInt64},
        {"collective_count", Kind::kInt64, "count"},
        {"last_count", Kind::kInt64, "count"},
        {"last_ratio", Kind::kFloat64, "0..1", true},
        {"wait_ns", Kind::kInt64, "ns"},
        {"wait_given_ns", Kind::kInt64, "ns"},
        {"delay_ns", Kind::kInt64, "ns"},
        {"role", Kind::kText},
        {"chronic", Kind::kBool},
        {"step_count", Kind::kInt64, "count"},
        {"late_step_count", Kind::kInt64, "count"},
        {"worst_collective",
         Kind::kStruct,
         "",
         true,
         {{"window", Kind::kInt64}, {"group", Kind::kText}, {"sequence", Kind::kInt64}, {"name", Kind::kText}}},
        {"activities",
         Kind::kList,
         "",
         false,
         {{"item",
           Kind::kStruct,
           "",
           false,
           {{"cause", Kind::kText}, {"name", Kind::kText}, {"excess_ns", Kind::kInt64, "ns"}}}}}}},
      {"findings",
       {{"id", Kind::kText},
        {"severity", Kind::kText},
        {"ranks", Kind::kList, "", false, {{"item", Kind::kInt64, "", false}}},
        {"title", Kind::kText},
        {"evidence",
         Kind::kList,
         "",
         false,
         {{"item",
           Kind::kStruct,
           "",
           false,
           {{"name", Kind::kText}, {"value", Kind::kFloat64, "in the name", true}, {"text", Kind::kText}}}}},
        {"advice", Kind::kList, "", false, {{"item", Kind::kText, "", false}}},
        {"gain_ns_per_step", Kind::kInt64, "ns", true},
        {"gain_ratio", Kind::kFloat64, "0..1", true}}},
      {"clocks",
       {{"rank", Kind::kInt64},
        {"window", Kind::kInt64},
        {"basis", Kind::kText},
        {"offset_ns", Kind::kInt64, "ns"},
        {"uncertainty_ns", Kind::kInt64, "ns", true},
        {"drift_ppm", Kind::kFloat64, "microseconds per second"},
        {"reference_ns", Kind::kInt64, "ns, the rank's own clock"},
        {"sample_count", Kind::kInt64, "count"}}},
      {"imbalance",
       {{"quantity", Kind::kText},
        {"mean", Kind::kFloat64, "the quantity's", true},
        {"min", Kind::kFloat64, "the quantity's", true},
        {"max", Kind::kFloat64, "the quantity's", true},
        {"ratio", Kind::kFloat64, "", true},
        {"min_rank", Kind::kInt64},
        {"max_rank", Kind::kInt64}}},
      {"ledger",
       {{"code", Kind::kText},
        {"severity", Kind::kText},
        {"source", Kind::kText, "", true},
        {"rank", Kind::kInt64, "", true},
        {"byte_offset", Kind::kInt64, "bytes", true},
        {"count", Kind::kInt64, "count"},
        {"message", Kind::kText},
        {"advice", Kind::kText, "", true}}},
      {"collective_members",
       {{"window", Kind::kInt64},
        {"group", Kind::kText},
        {"sequence", Kind::kInt64},
        {"match", Kind::kText},
        {"name", Kind::kText},
        {"bytes", Kind::kInt64, "bytes", true},
        {"group_size", Kind::kInt64, "count", true},
        {"synchronising", Kind::kBool},
        {"complete", Kind::kBool},
        {"rank", Kind::kInt64},
        {"arrival_ns", Kind::kInt64, "ns, aligned clock"},
        {"end_ns", Kind::kInt64, "ns, aligned clock"},
        {"wait_ns", Kind::kInt64, "ns", true},
        {"duration_ns", Kind::kInt64, "ns"},
        {"last_rank", Kind::kInt64, "", true},
        {"transfer_ns", Kind::kInt64, "ns", true},
        {"algbw_bytes_per_s", Kind::kFloat64, "bytes/s", true},
        {"busbw_bytes_per_s", Kind::kFloat64, "bytes/s", true}}},
  });
  return kSpecs;
}

const TableSpec* FindTableSpec(std::string_view name) {
  for (const TableSpec& spec : TableSpecs()) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

}  // namespace lockstep::python
