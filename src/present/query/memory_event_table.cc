#include <tuple>

#include "present/query/table.h"
#include "present/query/tables.h"
#include "present/query/time_range.h"

namespace lockstep::query {
namespace {

using model::MemoryColumns;
using Type = ColumnType;

struct MemoryColumn {
  enum : int { kRank, kWindow, kDevice, kTimeNs, kTraceTimeNs, kChangeBytes, kAllocatedBytes, kReservedBytes };
};

const TableSpec& MemoryEventSpec() {
  static const TableSpec spec{
      "memory_events",
      "Every allocation and release that the caching allocator recorded",
      "",
      {{"rank", Type::kInteger, "", "Global rank of the process.", ""},
       {"window", Type::kInteger, "", "0 for the first trace of this rank in time, 1 for the next, and so on.", ""},
       {"device", Type::kInteger, "", "Device ordinal; -1 = CPU.", ""},
       {"time_ns", Type::kInteger, "ns, aligned clock", "When.", ""},
       {"trace_time_ns", Type::kInteger, "ns, the rank's own clock", "When, as the file has it.", ""},
       {"change_bytes", Type::kInteger, "bytes", "Above 0 allocates, below 0 frees.", ""},
       {"allocated_bytes", Type::kInteger, "bytes", "`Total Allocated` after it.", "not recorded"},
       {"reserved_bytes", Type::kInteger, "bytes", "`Total Reserved` after it.", "not recorded"}}};
  return spec;
}

class MemoryScan : public Cursor {
 public:
  explicit MemoryScan(const Source& source) : source_(source) {}

  void Filter(std::span<const BoundConstraint> constraints) override {
    first_id_ = 0;
    rank_index_ = 0;
    end_rank_ = source_.run().ranks.size();
    rank_.reset();
    window_.reset();
    time_range_ = {};
    for (const BoundConstraint& bound : constraints) {
      if (bound.is_null()) end_rank_ = 0;  // nothing compares with NULL
      if (bound.constraint.column == MemoryColumn::kRank && bound.integer()) rank_ = bound.integer();
      if (bound.constraint.column == MemoryColumn::kWindow && bound.integer()) window_ = bound.integer();
      if (bound.constraint.column == MemoryColumn::kTimeNs) time_range_.Narrow(bound);
    }
    BeginRank();
  }

  bool done() const override { return rank_index_ >= end_rank_; }

  void Next() override {
    if (++row_ < end_) return;
    LeaveRank();
    BeginRank();
  }

  void Column(int column, CellOut& out) const override {
    const model::RankTrace& trace = source_.rank(rank_index_);
    const MemoryColumns& memory = trace.memory;
    switch (column) {
      case MemoryColumn::kRank: return out.Int(trace.rank.value);
      case MemoryColumn::kWindow: return out.Int(trace.window);
      case MemoryColumn::kDevice: return out.Int(memory.device[row_]);
      case MemoryColumn::kTimeNs: return out.Int(trace.clock.ToRun(memory.time_ns[row_]));
      case MemoryColumn::kTraceTimeNs: return out.Int(memory.time_ns[row_]);
      case MemoryColumn::kChangeBytes: return out.Int(memory.change_bytes[row_]);
      case MemoryColumn::kAllocatedBytes: return Recorded(memory.allocated_bytes[row_], out);
      case MemoryColumn::kReservedBytes: return Recorded(memory.reserved_bytes[row_], out);
      default: return out.Null();
    }
  }

  int64_t row_id() const override { return static_cast<int64_t>(first_id_ + row_); }

 private:
  static void Recorded(int64_t bytes, CellOut& out) { bytes < 0 ? out.Null() : out.Int(bytes); }

  void LeaveRank() {
    first_id_ += source_.rank(rank_index_).memory.size();
    ++rank_index_;
  }

  void BeginRank() {
    for (; rank_index_ < end_rank_; LeaveRank()) {
      const model::RankTrace& trace = source_.rank(rank_index_);
      if (rank_ && *rank_ != trace.rank.value) continue;
      if (window_ && *window_ != trace.window) continue;
      std::tie(row_, end_) = time_range_.RowsOf(trace.memory.time_ns, trace.clock);
      if (row_ < end_) return;
    }
  }

  const Source& source_;
  std::optional<int64_t> rank_, window_;
  TimeRange time_range_;
  size_t rank_index_ = 0;
  size_t end_rank_ = 0;
  size_t row_ = 0;
  size_t end_ = 0;
  uint64_t first_id_ = 0;  // events of the ranks before
};

class MemoryEventTable : public Table {
 public:
  const TableSpec& spec() const override { return MemoryEventSpec(); }

  bool CanUse(const Constraint& constraint) const override {
    const bool equal = constraint.op == SQLITE_INDEX_CONSTRAINT_EQ;
    return constraint.column == MemoryColumn::kTimeNs ||
           (equal && (constraint.column == MemoryColumn::kRank || constraint.column == MemoryColumn::kWindow));
  }

  Estimate EstimateOf(const Source* source, std::span<const Constraint> constraints) const override {
    double rows = 0;
    if (source == nullptr) {
      rows = 1e5;
    } else {
      for (const model::RankTrace& trace : source->run().ranks) rows += static_cast<double>(trace.memory.size());
    }
    for (size_t i = 0; i < constraints.size(); ++i) rows /= 4;
    return {rows, rows};
  }

  bool IsSorted(const Source* source, std::span<const Constraint>, int column) const override {
    return column == MemoryColumn::kWindow ||
           (column == MemoryColumn::kRank && source != nullptr && source->HasOneWindow());
  }

  std::unique_ptr<Cursor> Open(const Source& source) const override { return std::make_unique<MemoryScan>(source); }
};

}  // namespace

std::unique_ptr<Table> MakeMemoryEventTable() { return std::make_unique<MemoryEventTable>(); }

}  // namespace lockstep::query
