#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/flight_recorder/dump_tables.h"
#include "ingest/flight_recorder/dump_value.h"
#include "ingest/flight_recorder/entry_fields.h"
#include "ingest/flight_recorder/flight_recorder.h"
#include "ingest/flight_recorder/plain_entries.h"
#include "model/evidence/flight_record.h"

namespace lockstep::ingest {

/// Recognises what a list or dict of a dump is once it is filled, and makes the record. Independent of pickle and JSON.
/// One dump, one thread.
class RecordBuilder {
 public:
  /// `byte_count`: of the dump; memory is bounded by it.
  explicit RecordBuilder(size_t byte_count) : tables_(byte_count), fields_(tables_), plain_(tables_, fields_) {}

  DumpTexts& texts() { return tables_.texts; }

  /// Adds items to a list, or makes a list of them when `target` is an empty one. False when a limit is passed.
  [[nodiscard]] bool FillList(Value& target, std::span<const Value> items);
  /// Adds items (key, value, key, value, ...) to a dict.
  [[nodiscard]] bool FillDict(Value& target, std::span<const Value> items);
  /// An entry that the stack need not see; see PlainEntries::Read. Its number, or nothing.
  std::optional<uint32_t> ReadPlainEntry(const char*& at, const char* end, std::span<Value> memo);
  /// Whether a dict with these items is an entry or a frame, which are nothing by half.
  bool IsEntryOrFrame(std::span<const Value> items) const;

  /// The records out of the whole file; see ReadFlightRecords. The builder is used up.
  Result<std::vector<RankedRecord>> Finish(const Value& top, bool truncated);

 private:
  template <typename T, typename Table>
  bool AddToTable(Table& table, ValueKind kind, Value& target, std::span<const Value> items);
  bool AddToIndexList(std::vector<std::vector<uint32_t>>& lists, ValueKind list, ValueKind item_kind, Value& target,
                      std::span<const Value> items);
  bool RefillDict(Value& target, std::span<const Value> items);
  uint32_t MakeFrame(const Value& target, std::span<const Value> items);

  DumpTables tables_;
  EntryFields fields_;
  PlainEntries plain_;
  std::vector<evidence::FlightEntry> entries_;
  std::vector<int64_t> scratch_numbers_;
  std::vector<uint32_t> scratch_;
};

}  // namespace lockstep::ingest
