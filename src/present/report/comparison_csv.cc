#include <filesystem>
#include <system_error>

#include "present/report/comparison_report.h"
#include "present/report/csv_table.h"

namespace lockstep::report {
namespace {

using comparison::Comparison;
using comparison::Delta;

/// a, b, shift, low, high, change.
void AddDelta(const Delta& delta, std::vector<Cell>* cells) {
  cells->insert(cells->end(), {Cell(delta.a), Cell(delta.b), delta.shift ? Cell(delta.shift->estimate) : Cell(),
                               OptionalCell(delta.shift ? delta.shift->low : std::nullopt),
                               OptionalCell(delta.shift ? delta.shift->high : std::nullopt),
                               Cell(std::string(ChangeName(delta.change)))});
}

FlatTable Parts(const Comparison& c) {
  FlatTable table{.name = "parts",
                  .columns = {"part", "a_ns", "b_ns", "shift_ns", "low_ns", "high_ns", "change"},
                  .row_count = comparison::kPartCount + 1};
  table.fill = [&c](size_t row, std::vector<Cell>* cells) {
    cells->emplace_back(std::string(row == 0 ? "job_step_ns" : PartName(static_cast<comparison::Part>(row - 1))));
    AddDelta(row == 0 ? c.step : c.parts[row - 1], cells);
  };
  return table;
}

FlatTable Steps(const Comparison& c) {
  FlatTable table{.name = "steps",
                  .columns = {"run", "window", "step", "step_ns", "slowest_rank"},
                  .row_count = c.a.steps.size() + c.b.steps.size()};
  table.fill = [&c](size_t row, std::vector<Cell>* cells) {
    const bool of_a = row < c.a.steps.size();
    const comparison::RunProfile& run = of_a ? c.a : c.b;
    const size_t i = of_a ? row : row - c.a.steps.size();
    *cells = {Cell(std::string(of_a ? "a" : "b")), Cell(int64_t{run.steps[i].first}), Cell(run.steps[i].second),
              Cell(run.step_ns[i]), Cell(int64_t{run.slowest_rank[i]})};
  };
  return table;
}

FlatTable Ranks(const Comparison& c) {
  FlatTable table{.name = "ranks",
                  .columns = {"rank", "part", "a_ns", "b_ns", "shift_ns", "low_ns", "high_ns", "change"},
                  .row_count = c.ranks.size() * (comparison::kPartCount + 1)};
  table.fill = [&c](size_t row, std::vector<Cell>* cells) {
    const comparison::RankDelta& rank = c.ranks[row / (comparison::kPartCount + 1)];
    const size_t part = row % (comparison::kPartCount + 1);
    cells->emplace_back(int64_t{rank.rank});
    cells->emplace_back(std::string(part == 0 ? "own_ns" : PartName(static_cast<comparison::Part>(part - 1))));
    AddDelta(part == 0 ? rank.own : rank.parts[part - 1], cells);
  };
  return table;
}

FlatTable Names(const Comparison& c) {
  FlatTable table{.name = "names",
                  .columns = {"kind",      "name",          "name_a",        "match",        "change",
                              "count_a",   "count_b",       "calls_a",       "calls_b",      "call_a_ns",
                              "call_b_ns", "call_shift_ns", "call_low_ns",   "call_high_ns", "p_adjusted",
                              "step_a_ns", "step_b_ns",     "step_delta_ns", "worst_rank",   "worst_rank_delta_ns"},
                  .row_count = c.names.size()};
  table.fill = [&c](size_t i, std::vector<Cell>* cells) {
    const comparison::NameDelta& row = c.names[i];
    const auto& shift = row.call.shift;
    *cells = {Cell(std::string(EventClassName(row.kind))),
              Cell(row.pair.b ? row.name_b : row.name_a),
              row.pair.a ? Cell(row.name_a) : Cell(),
              Cell(std::string(NameMatchName(row.pair.match))),
              Cell(std::string(ChangeName(row.change))),
              Cell(row.count_a),
              Cell(row.count_b),
              Cell(row.calls_a),
              Cell(row.calls_b),
              row.pair.a ? Cell(row.call.a) : Cell(),
              row.pair.b ? Cell(row.call.b) : Cell(),
              shift ? Cell(shift->estimate) : Cell(),
              OptionalCell(shift ? shift->low : std::nullopt),
              OptionalCell(shift ? shift->high : std::nullopt),
              Cell(row.p_adjusted),
              Cell(row.step.a),
              Cell(row.step.b),
              Cell(row.delta_ns()),
              row.worst_rank ? Cell(int64_t{*row.worst_rank}) : Cell(),
              row.worst_rank ? Cell(row.worst_rank_delta_ns) : Cell()};
  };
  return table;
}

constexpr size_t kTransferColumn = 6;  // "transfer_a_ns"

FlatTable Collectives(const Comparison& c) {
  FlatTable table{.name = "collectives",
                  .columns = {"name", "bytes", "calls_a", "calls_b", "busbw_a_bytes_per_s", "busbw_b_bytes_per_s",
                              "transfer_a_ns", "transfer_b_ns", "transfer_shift_ns", "transfer_low_ns",
                              "transfer_high_ns", "change", "wait_a_ns", "wait_b_ns"},
                  .row_count = c.collectives.size()};
  table.fill = [&c](size_t i, std::vector<Cell>* cells) {
    const comparison::CollectiveDelta& row = c.collectives[i];
    *cells = {Cell(row.name),    OptionalCell(row.bytes),   Cell(row.calls_a),
              Cell(row.calls_b), OptionalCell(row.busbw_a), OptionalCell(row.busbw_b)};
    AddDelta(row.transfer, cells);
    cells->back() = std::string(ChangeName(row.change));
    cells->push_back(OptionalCell(row.timed_a ? std::optional(row.wait.a) : std::nullopt));
    cells->push_back(OptionalCell(row.timed_b ? std::optional(row.wait.b) : std::nullopt));
    if (!row.timed_a) (*cells)[kTransferColumn].emplace<std::monostate>();
    if (!row.timed_b) (*cells)[kTransferColumn + 1].emplace<std::monostate>();
  };
  return table;
}

FlatTable Memory(const Comparison& c) {
  FlatTable table{.name = "memory",
                  .columns = {"rank", "device", "peak_allocated_a_bytes", "peak_allocated_b_bytes",
                              "peak_reserved_a_bytes", "peak_reserved_b_bytes"},
                  .row_count = c.memory.size()};
  table.fill = [&c](size_t i, std::vector<Cell>* cells) {
    const comparison::MemoryDelta& row = c.memory[i];
    *cells = {Cell(int64_t{row.rank}),       Cell(int64_t{row.device}),    OptionalCell(row.allocated_a),
              OptionalCell(row.allocated_b), OptionalCell(row.reserved_a), OptionalCell(row.reserved_b)};
  };
  return table;
}

}  // namespace

Status WriteComparisonCsv(const Comparison& comparison, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // Writing the first file says what is wrong.
  for (const FlatTable& table : {Steps(comparison), Parts(comparison), Ranks(comparison), Names(comparison),
                                 Collectives(comparison), Memory(comparison)}) {
    RETURN_IF_ERROR(WriteCsvTable(folder, table));
  }
  return {};
}

}  // namespace lockstep::report
