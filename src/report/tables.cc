#include "report/tables.h"

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/breakdown.h"
#include "analysis/idle.h"
#include "analysis/kernels.h"
#include "analysis/launch.h"
#include "analysis/memory.h"
#include "analysis/operators.h"
#include "report/declared_tables.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using model::Run;

// What a column is called and how a row gives it.
template <typename Row>
struct Column {
  std::string_view name;
  std::function<Cell(const Row&)> value;
};

// Every table begins with the rank and its window.
template <typename Row>
FlatTable Table(std::string_view name, std::string_view pass, const Run& run, const std::vector<Row>& rows,
                std::vector<Column<Row>> columns) {
  FlatTable table;
  table.name = name;
  table.pass = pass;
  table.columns = {"rank", "window"};
  for (const Column<Row>& column : columns) table.columns.push_back(column.name);
  table.row_count = rows.size();
  table.fill = [&run, &rows, columns = std::move(columns)](size_t row, std::vector<Cell>* cells) {
    const model::RankTrace& trace = run.ranks[rows[row].rank_index];
    cells->emplace_back(int64_t{trace.rank.value});
    cells->emplace_back(int64_t{trace.window});
    for (const Column<Row>& column : columns) cells->push_back(column.value(rows[row]));
  };
  return table;
}

FlatTable BreakdownTable(std::string_view name, const Run& run, const std::vector<analysis::BreakdownRow>& rows,
                         bool per_step) {
  using Row = analysis::BreakdownRow;
  // Without a basis the durations mean nothing: they are null, never 0.
  const auto time = [](int64_t Row::*field) {
    return [field](const Row& row) -> Cell {
      if (row.basis == analysis::Basis::kNone) return std::monostate{};
      return row.*field;
    };
  };
  std::vector<Column<Row>> columns;
  if (per_step) columns.push_back({"step", [](const Row& row) { return OptionalCell(row.step_number); }});
  const std::vector<Column<Row>> rest = {
      {"basis", [](const Row& row) { return TextCell(analysis::BasisName(row.basis)); }},
      {"start_ns", time(&Row::start_ns)},
      {"span_ns", time(&Row::span_ns)},
      {"busy_ns", time(&Row::busy_ns)},
      {"compute_ns", time(&Row::compute_ns)},
      {"communication_ns", time(&Row::communication_ns)},
      {"exposed_communication_ns", time(&Row::exposed_communication_ns)},
      {"overlapped_communication_ns", time(&Row::overlapped_communication_ns)},
      {"memory_ns", time(&Row::memory_ns)},
      {"exposed_memory_ns", time(&Row::exposed_memory_ns)},
      {"idle_ns", time(&Row::idle_ns)},
      {"communication_overlap_ratio",
       [](const Row& row) {
         return row.basis == analysis::Basis::kNone ? Cell{} : OptionalCell(row.communication_overlap_ratio());
       }},
  };
  columns.insert(columns.end(), rest.begin(), rest.end());
  return Table<Row>(name, "breakdown", run, rows, std::move(columns));
}

FlatTable IdleTable(const Run& run, const AnalysisResult& result) {
  using Row = analysis::IdleRow;
  return Table<Row>("idle", "idle", run, result.Get<analysis::Idle>().rows,
                    {{"device", [](const Row& row) { return Cell(int64_t{row.device.value}); }},
                     {"stream", [](const Row& row) { return Cell(row.stream.value); }},
                     {"host_wait_ns", [](const Row& row) { return Cell(row.host_wait_ns); }},
                     {"kernel_wait_ns", [](const Row& row) { return Cell(row.kernel_wait_ns); }},
                     {"other_ns", [](const Row& row) { return Cell(row.other_ns); }}});
}

FlatTable IdleHostTable(const Run& run, const AnalysisResult& result) {
  using Row = analysis::IdleHostRow;
  return Table<Row>("idle_host", "idle", run, result.Get<analysis::Idle>().host,
                    {{"runtime_ns", [](const Row& row) { return Cell(row.runtime_ns); }},
                     {"data_loader_ns", [](const Row& row) { return Cell(row.data_loader_ns); }},
                     {"operator_ns", [](const Row& row) { return Cell(row.operator_ns); }},
                     {"unknown_ns", [](const Row& row) { return Cell(row.unknown_ns); }}});
}

FlatTable KernelTable(const Run& run, const AnalysisResult& result) {
  using Row = analysis::KernelRow;
  return Table<Row>("kernels", "kernels", run, result.Get<analysis::Kernels>().rows,
                    {{"name", [&run](const Row& row) { return TextCell(run.names[row.name]); }},
                     {"kind", [](const Row& row) { return TextCell(analysis::KernelKindName(row.kind)); }},
                     {"count", [](const Row& row) { return Cell(row.count); }},
                     {"total_ns", [](const Row& row) { return Cell(row.total_ns); }},
                     {"mean_ns", [](const Row& row) { return Cell(row.mean_ns); }},
                     {"min_ns", [](const Row& row) { return Cell(row.min_ns); }},
                     {"max_ns", [](const Row& row) { return Cell(row.max_ns); }},
                     {"stddev_ns", [](const Row& row) { return Cell(row.stddev_ns); }}});
}

FlatTable OperatorTable(const Run& run, const AnalysisResult& result) {
  using Row = analysis::OperatorRow;
  return Table<Row>("operators", "operators", run, result.Get<analysis::Operators>().rows,
                    {{"name", [&run](const Row& row) { return TextCell(run.names[row.name]); }},
                     {"count", [](const Row& row) { return Cell(row.count); }},
                     {"cpu_self_ns", [](const Row& row) { return Cell(row.cpu_self_ns); }},
                     {"cpu_total_ns", [](const Row& row) { return Cell(row.cpu_total_ns); }},
                     {"device_self_ns", [](const Row& row) { return Cell(row.device_self_ns); }},
                     {"device_total_ns", [](const Row& row) { return Cell(row.device_total_ns); }}});
}

FlatTable MemoryTable(const Run& run, const AnalysisResult& result) {
  using Row = analysis::MemoryRow;
  return Table<Row>("memory", "memory", run, result.Get<analysis::Memory>().rows,
                    {{"device", [](const Row& row) { return Cell(int64_t{row.device}); }},
                     {"peak_allocated_bytes", [](const Row& row) { return OptionalCell(row.peak_allocated_bytes); }},
                     {"peak_reserved_bytes", [](const Row& row) { return OptionalCell(row.peak_reserved_bytes); }},
                     {"device_memory_bytes", [](const Row& row) { return OptionalCell(row.device_memory_bytes); }},
                     {"allocation_count", [](const Row& row) { return Cell(row.allocation_count); }},
                     {"free_count", [](const Row& row) { return Cell(row.free_count); }},
                     {"net_bytes", [](const Row& row) { return Cell(row.net_bytes); }}});
}

FlatTable LaunchTable(const Run& run, const AnalysisResult& result) {
  using Row = analysis::LaunchRow;
  return Table<Row>("launch", "launch", run, result.Get<analysis::Launch>().rows,
                    {{"launch_count", [](const Row& row) { return Cell(row.launch_count); }},
                     {"unlinked_count", [](const Row& row) { return Cell(row.unlinked_count); }},
                     {"total_delay_ns", [](const Row& row) { return Cell(row.total_delay_ns); }},
                     {"max_delay_ns", [](const Row& row) { return Cell(row.max_delay_ns); }},
                     {"median_delay_ns", [](const Row& row) { return OptionalCell(row.median_delay_ns); }},
                     {"long_delay_count", [](const Row& row) { return Cell(row.long_delay_count); }},
                     {"short_kernel_count", [](const Row& row) { return Cell(row.short_kernel_count); }},
                     {"long_call_count", [](const Row& row) { return Cell(row.long_call_count); }}});
}

FlatTable QueueTable(const Run& run, const AnalysisResult& result) {
  using Row = analysis::QueueRow;
  return Table<Row>("queues", "launch", run, result.Get<analysis::Launch>().queues,
                    {{"device", [](const Row& row) { return Cell(int64_t{row.device.value}); }},
                     {"stream", [](const Row& row) { return Cell(row.stream.value); }},
                     {"change_count", [](const Row& row) { return Cell(row.change_count); }},
                     {"mean_length", [](const Row& row) { return Cell(row.mean_length); }},
                     {"max_length", [](const Row& row) { return Cell(row.max_length); }},
                     {"full_ns", [](const Row& row) { return Cell(row.full_ns); }}});
}

}  // namespace

std::vector<FlatTable> FlatTables(const Run& run, const AnalysisResult& result) {
  std::vector<FlatTable> tables;
  tables.push_back(BreakdownTable("breakdown", run, result.Get<analysis::Breakdown>().ranks, false));
  tables.push_back(BreakdownTable("steps", run, result.Get<analysis::Breakdown>().steps, true));
  tables.push_back(IdleTable(run, result));
  tables.push_back(IdleHostTable(run, result));
  tables.push_back(KernelTable(run, result));
  tables.push_back(OperatorTable(run, result));
  tables.push_back(MemoryTable(run, result));
  tables.push_back(LaunchTable(run, result));
  tables.push_back(QueueTable(run, result));
  for (const DeclaredTable& declared : DeclaredTables()) {
    FlatTable table;
    table.name = declared.name;
    table.pass = declared.pass;
    for (const DeclaredColumn& column : declared.columns) table.columns.push_back(column.name);
    table.row_count = declared.row_count(result);
    table.fill = [&run, &result, &declared](size_t row, std::vector<Cell>* cells) {
      for (const DeclaredColumn& column : declared.columns) cells->push_back(column.value(run, result, row));
    };
    tables.push_back(std::move(table));
  }
  return tables;
}

std::string IntegerList::Text() const {
  std::string text = "[";
  for (const int64_t value : values) {
    if (text.size() > 1) text += ',';
    text += std::to_string(value);
  }
  return text + ']';
}

RankDevice DeviceOf(const model::RankTrace& trace) {
  RankDevice found;
  std::set<int32_t> ordinals;
  for (const DeviceOrdinal ordinal : trace.DeviceOrdinals()) ordinals.insert(ordinal.value);
  found.ordinals.assign(ordinals.begin(), ordinals.end());
  for (const model::Device& device : trace.devices) {
    if (ordinals.count(device.ordinal.value) != 0) {
      found.name = device.name;
      break;
    }
  }
  return found;
}

JobFacts FactsOf(const Run& run) {
  JobFacts facts;
  std::set<int32_t> ranks;
  std::set<int32_t> windows;
  std::set<std::string> hosts;
  for (const model::RankTrace& trace : run.ranks) {
    ranks.insert(trace.rank.value);
    windows.insert(trace.window);
    if (!trace.host.empty()) hosts.insert(trace.host);
    if (trace.world_size && *trace.world_size > facts.world_size.value_or(0)) facts.world_size = trace.world_size;
    if (facts.backend.empty()) facts.backend = trace.backend;
    facts.event_count += trace.event_count;
  }
  facts.rank_count = ranks.size();
  facts.window_count = windows.size();
  facts.hosts.assign(hosts.begin(), hosts.end());
  if (facts.world_size) {
    // A file may claim any world size: count without walking it, list only the first ones.
    const auto below =
        std::count_if(ranks.begin(), ranks.end(), [&](int32_t rank) { return rank >= 0 && rank < *facts.world_size; });
    facts.missing_rank_count = static_cast<size_t>(*facts.world_size) - static_cast<size_t>(below);
    for (int32_t rank = 0; rank < *facts.world_size && facts.missing_ranks.size() < 1000; ++rank) {
      if (ranks.count(rank) == 0) facts.missing_ranks.push_back(rank);
    }
  }
  return facts;
}

}  // namespace lockstep::report
