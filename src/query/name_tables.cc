#include "analysis/kernels.h"
#include "analysis/operators.h"
#include "query/rank_fields.h"
#include "query/tables.h"

namespace lockstep::query {
namespace {

using analysis::KernelRow;
using analysis::OperatorRow;
using Type = ColumnType;

template <typename Row>
Field<Row> NameField() {
  return {{"name", Type::kText, "", "As in the trace, whole; short_name() makes it readable.", ""},
          [](const Source& source, const Row& row, CellOut& out) { out.Static(source.run().names[row.name]); }};
}

std::vector<Field<KernelRow>> KernelFields() {
  using Row = KernelRow;
  return {RankField<Row>(),
          WindowField<Row>(),
          NameField<Row>(),
          {{"kind", Type::kText, "", "`compute`, `communication`, `memcpy` or `memset`.", ""},
           [](const Source&, const Row& row, CellOut& out) { out.Static(analysis::KernelKindName(row.kind)); }},
          {{"count", Type::kInteger, "count", "Events.", ""},
           [](const Source&, const Row& row, CellOut& out) { out.Count(row.count); }},
          {{"total_ns", Type::kInteger, "ns", "Sum of durations; overlapping events count twice.", ""},
           [](const Source&, const Row& row, CellOut& out) { out.Int(row.total_ns); }},
          {{"mean_ns", Type::kReal, "ns", "`total_ns` / `count`.", ""},
           [](const Source&, const Row& row, CellOut& out) { out.Real(row.mean_ns); }},
          {{"min_ns", Type::kInteger, "ns", "Shortest.", ""},
           [](const Source&, const Row& row, CellOut& out) { out.Int(row.min_ns); }},
          {{"max_ns", Type::kInteger, "ns", "Longest.", ""},
           [](const Source&, const Row& row, CellOut& out) { out.Int(row.max_ns); }},
          {{"stddev_ns", Type::kReal, "ns", "Sample standard deviation (n - 1); 0 for one event.", ""},
           [](const Source&, const Row& row, CellOut& out) { out.Real(row.stddev_ns); }}};
}

std::vector<Field<OperatorRow>> OperatorFields() {
  using Row = OperatorRow;
  return {
      RankField<Row>(),
      WindowField<Row>(),
      NameField<Row>(),
      {{"count", Type::kInteger, "count", "Calls.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Count(row.count); }},
      {{"cpu_self_ns", Type::kInteger, "ns", "Time in the range less its direct children's on the same thread.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.cpu_self_ns); }},
      {{"cpu_total_ns", Type::kInteger, "ns", "Time in the range.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.cpu_total_ns); }},
      {{"device_self_ns", Type::kInteger, "ns", "Durations of the device events launched from this range itself.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.device_self_ns); }},
      {{"device_total_ns", Type::kInteger, "ns", "And from everything nested in it.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.device_total_ns); }}};
}

}  // namespace

void AddNameTables(TableList* tables) {
  tables->push_back(std::make_unique<RowTable<KernelRow>>(
      RowTable<KernelRow>::Parts{.name = "kernel_totals",
                                 .sentence = "Device events of one name on one rank, added up",
                                 .pass = "kernels",
                                 .fields = KernelFields(),
                                 .rows =
                                     [](const Source& source) {
                                       return std::span<const KernelRow>(source.result().Get<analysis::Kernels>().rows);
                                     },
                                 .sorted_by = {kWindowColumn, kRankColumn}}));
  tables->push_back(std::make_unique<RowTable<OperatorRow>>(RowTable<OperatorRow>::Parts{
      .name = "operators",
      .sentence = "Operators and annotations of one name on one rank, added up",
      .pass = "operators",
      .fields = OperatorFields(),
      .rows =
          [](const Source& source) {
            return std::span<const OperatorRow>(source.result().Get<analysis::Operators>().rows);
          },
      .sorted_by = {kWindowColumn, kRankColumn}}));
}

}  // namespace lockstep::query
