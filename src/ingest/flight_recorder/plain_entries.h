#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ingest/flight_recorder/dump_tables.h"
#include "ingest/flight_recorder/dump_value.h"
#include "ingest/flight_recorder/entry_fields.h"
#include "ingest/flight_recorder/entry_patterns.h"
#include "model/evidence/flight_record.h"

namespace lockstep::ingest {

/// Reads most entries of a pickled dump without the stack: those whose keys, texts and frames all occurred before, so
/// that they are numbers in the memo, and whose values are of the usual kinds. An entry that is any different is left
/// to the stack machine, which gives the same for these too: this is only faster. One thread.
class PlainEntries {
 public:
  PlainEntries(DumpTables& tables, EntryFields& fields) : tables_(tables), fields_(fields) {}

  /// `at`: behind EMPTY_DICT. True: `entry` is read and `at` behind its SETITEMS. False: nothing has changed.
  [[nodiscard]] bool Read(const char*& at, const char* end, std::span<Value> memo, evidence::FlightEntry& entry);

 private:
  // Each takes what it understands at place_ and moves on; false when it is something else.
  bool TakeMemo(Value*& value);
  bool TakeInt(int64_t& number);
  bool TakeCount(int64_t& field);
  bool TakeTime(int64_t& field, int64_t factor);
  bool TakeText(uint32_t& field);
  bool TakeThreadId(int64_t& field);
  bool TakeGroup();
  bool TakeState(evidence::EntryState& field);
  bool TakeBool(bool& field);
  bool TakeDuration(int64_t& field);
  bool TakeFrames(uint32_t& field);
  bool TakeSizes(uint32_t& field);
  bool TakeDtypes(uint32_t& field);
  bool TakeField(DumpKey key, evidence::FlightEntry& entry);
  /// The entry that is expected to come, where it comes.
  bool TakeExpected(evidence::FlightEntry& entry);
  bool TakeAny(evidence::FlightEntry& entry);
  uint32_t GroupIndex();

  // The longest thing that is read without looking for the end: a key and a number.
  static constexpr std::ptrdiff_t kRoom = 32;
  bool HasRoom() const { return end_ - place_ >= kRoom; }

  DumpTables& tables_;
  EntryFields& fields_;
  const char* place_ = nullptr;
  const char* end_ = nullptr;
  std::span<Value> memo_;
  EntryFields::GroupKey group_;
  std::vector<std::pair<EntryFields::GroupKey, uint32_t>> recent_groups_;   // By the lowest bits of the local id.
  std::pair<uint32_t, int64_t> last_thread_ = {0, evidence::kNotRecorded};  // Text and number.
  std::vector<uint32_t> scratch_;
  std::vector<int64_t> scratch_numbers_;
  ListTable<int64_t> flat_sizes_;     // Shapes of a list behind each other, each after its length.
  std::vector<uint32_t> size_lists_;  // By flat list.
  EntryPatterns patterns_;
  std::vector<EntryPatterns::Piece> scratch_pieces_;
};

}  // namespace lockstep::ingest
