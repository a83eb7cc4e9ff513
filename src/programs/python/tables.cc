#include "programs/python/tables.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/pass_registry.h"
#include "base/cell.h"
#include "present/report/flat_table.h"
#include "present/report/job_facts.h"
#include "programs/python/column_builder.h"
#include "programs/python/table_specs.h"

namespace lockstep::python {
namespace {

using analysis::AnalysisResult;
using model::RankTrace;
using model::Run;

/// Fills a row's columns one after another, in the order of the spec.
class Row {
 public:
  explicit Row(TableBuilder* table) : table_(*table) {}
  ColumnBuilder& operator()() { return table_[next_++]; }
  Row& Int(int64_t value) { return (*this)().Int(value), *this; }
  Row& Count(uint64_t value) { return Int(static_cast<int64_t>(value)); }
  Row& Double(double value) { return (*this)().Double(value), *this; }
  Row& Bool(bool value) { return (*this)().Bool(value), *this; }
  Row& Text(std::string_view value) { return (*this)().Text(value), *this; }
  Row& TextOrNull(std::string_view value) { return (*this)().TextOrNull(value), *this; }
  template <typename T>
  Row& Optional(const std::optional<T>& value) {
    return (*this)().Optional(value), *this;
  }
  Row& Ints(const auto& values, auto&& number) {
    ColumnBuilder& list = (*this)();
    for (const auto& value : values) list.child(0).Int(number(value));
    list.End();
    return *this;
  }

 private:
  TableBuilder& table_;
  size_t next_ = 0;
};

int64_t Same(int32_t value) { return value; }

void Ranks(const Run& run, const AnalysisResult&, TableBuilder* table) {
  for (const RankTrace& trace : run.ranks) {
    const report::RankDevice device = report::DeviceOf(trace);
    Row row(table);
    row.Int(trace.rank.value).Int(trace.window).Text(model::RankSourceName(trace.rank_source));
    row.Optional(trace.world_size).TextOrNull(trace.host).TextOrNull(device.name).Ints(device.ordinals, Same);
    row.TextOrNull(trace.backend).Text(trace.source).Count(trace.event_count).Count(trace.json_bytes);
    row.Optional(trace.first_ns).Optional(trace.last_ns);
  }
}

void Clocks(const Run& run, const AnalysisResult&, TableBuilder* table) {
  for (const RankTrace& trace : run.ranks) {
    const model::ClockMap& clock = trace.clock;
    Row row(table);
    row.Int(trace.rank.value).Int(trace.window).Text(report::ClockBasisName(clock.basis)).Int(clock.offset_ns);
    row.Optional(clock.uncertainty_ns).Double(clock.drift_ppm).Int(clock.reference_ns).Count(clock.sample_count);
  }
}

void Begin(const analysis::CollectiveInstance& instance, Row* row) {
  row->Int(instance.window).Text(instance.group).Int(instance.sequence);
  row->Text(analysis::MatchBasisName(instance.basis)).Text(instance.name).Optional(instance.bytes);
  row->Optional(instance.group_size).Bool(instance.synchronising).Bool(instance.complete);
}

void End(const Run& run, const analysis::CollectiveInstance& instance, Row* row) {
  ColumnBuilder& last = (*row)();
  instance.last_rank_index ? last.Int(run.ranks[*instance.last_rank_index].rank.value) : last.Null();
  row->Optional(instance.transfer_ns).Optional(instance.algbw_bytes_per_s).Optional(instance.busbw_bytes_per_s);
}

void CollectiveMembers(const Run& run, const AnalysisResult& result, TableBuilder* table) {
  for (const analysis::CollectiveInstance& instance : result.Get<analysis::Collectives>().instances) {
    for (const analysis::CollectiveMember& member : instance.members) {
      Row row(table);
      Begin(instance, &row);
      row.Int(run.ranks[member.rank_index].rank.value).Int(member.arrival_ns).Int(member.end_ns);
      row.Optional(member.wait_ns).Int(member.duration_ns);
      End(run, instance, &row);
    }
  }
}

void Ledger(const Run& run, const AnalysisResult&, TableBuilder* table) {
  for (const model::LedgerEntry& entry : run.ledger.entries()) {
    Row row(table);
    row.Text(entry.code).Text(model::SeverityName(entry.severity)).TextOrNull(entry.source).Optional(entry.rank);
    ColumnBuilder& offset = row();
    entry.byte_offset ? offset.Int(static_cast<int64_t>(*entry.byte_offset)) : offset.Null();
    row.Count(entry.count).Text(entry.message).TextOrNull(entry.advice);
  }
}

/// A declared table, as JSON has it.
void Declared(const report::FlatTable& flat, TableBuilder* table) {
  std::vector<Cell> cells;
  for (size_t r = 0; r < flat.row_count; ++r) {
    cells.clear();
    flat.fill(r, &cells);
    for (size_t c = 0; c < cells.size(); ++c) (*table)[c].Append(cells[c]);
  }
}

using Fill = void (*)(const Run&, const AnalysisResult&, TableBuilder*);

struct NamedFill {
  std::string_view name;
  Fill fill;
};

constexpr NamedFill kOther[] = {
    {"ranks", Ranks}, {"clocks", Clocks}, {"collective_members", CollectiveMembers}, {"ledger", Ledger}};

}  // namespace

std::string_view PassOfTable(std::string_view name) {
  if (name == "collective_members") return analysis::Collectives::kPass;
  const analysis::Table* table = analysis::FindTable(name);
  return table != nullptr ? table->pass : std::string_view();
}

Table BuildTable(std::string_view name, const Run& run, const AnalysisResult& result) {
  const TableSpec* spec = FindTableSpec(name);
  if (spec == nullptr) throw std::logic_error("no table is named '" + std::string(name) + "'");
  TableBuilder table(spec->name, spec->columns);
  for (const NamedFill& other : kOther) {
    if (other.name != name) continue;
    other.fill(run, result, &table);
    return std::move(table).Finish();
  }
  for (const report::FlatTable& flat : report::FlatTables(run, result, analysis::ColumnPlace::kOnlyInJson)) {
    if (flat.name == name) Declared(flat, &table);
  }
  return std::move(table).Finish();
}

}  // namespace lockstep::python
