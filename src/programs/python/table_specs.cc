#include "programs/python/table_specs.h"

#include <utility>

#include "analysis/pass_registry.h"
#include "analysis/table.h"

namespace lockstep::python {
namespace {

Kind KindOf(analysis::ColumnType type) {
  switch (type) {
    case analysis::ColumnType::kReal: return Kind::kFloat64;
    case analysis::ColumnType::kText: return Kind::kText;
    case analysis::ColumnType::kBoolean: return Kind::kBool;
    case analysis::ColumnType::kObject: return Kind::kStruct;
    case analysis::ColumnType::kInteger: break;
  }
  return Kind::kInt64;
}

ColumnSpec SpecOf(const analysis::TableColumn& column) {
  ColumnSpec spec{std::string(column.name), KindOf(column.type), std::string(column.unit), !column.null.empty()};
  for (const analysis::TableColumn& field : column.fields) spec.children.push_back(SpecOf(field));
  if (!column.is_list) return spec;
  ColumnSpec list{spec.name, Kind::kList, spec.unit};
  spec.name = "item";
  list.children.push_back(std::move(spec));
  return list;
}

/// The tables that passes declare for all forms are declared for this one as well.
std::vector<TableSpec> WithDeclaredTables(std::vector<TableSpec> specs) {
  for (const analysis::Table* table : analysis::Tables()) {
    // What lies in an object of others is a part of that, and what a run alone does not have is no table of it.
    const bool is_part = table->place.json_path.find('.') != std::string::npos;
    const analysis::Pass* pass = analysis::FindPass(table->pass);
    if (is_part || (pass != nullptr && pass->info.kind == analysis::PassKind::kOnRequest)) continue;
    TableSpec& spec = specs.emplace_back();
    spec.name = table->name;
    for (const analysis::TableColumn& column : table->columns) {
      if (IsIn(column.place, analysis::ColumnPlace::kOnlyInJson)) spec.columns.push_back(SpecOf(column));
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
      {"clocks",
       {{"rank", Kind::kInt64},
        {"window", Kind::kInt64},
        {"basis", Kind::kText},
        {"offset_ns", Kind::kInt64, "ns"},
        {"uncertainty_ns", Kind::kInt64, "ns", true},
        {"drift_ppm", Kind::kFloat64, "microseconds per second"},
        {"reference_ns", Kind::kInt64, "ns, the rank's own clock"},
        {"sample_count", Kind::kInt64, "count"}}},
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
