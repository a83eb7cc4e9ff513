#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ingest/flight_recorder/dump_tables.h"
#include "model/evidence/flight_record.h"

namespace lockstep::ingest {

/// A whole number, also where it is written as a decimal text. nullopt for anything else.
std::optional<int64_t> NumberOf(const Value& value, const DumpTexts& texts);
std::optional<int64_t> NumberOf(std::string_view text);

/// Puts the fields of one entry's dict into `entry`. Until the record is done its texts, sizes and stack are indices
/// into `tables`, its group is one into `groups_`. One thread.
class EntryFields {
 public:
  explicit EntryFields(DumpTables& tables) : tables_(tables) {}

  /// How an entry names its group.
  struct GroupKey {
    int64_t local_id = evidence::kNotRecorded;
    uint32_t name = 0;  ///< Into tables' texts.
    uint32_t description = 0;
    bool operator==(const GroupKey&) const = default;
  };
  const std::vector<GroupKey>& groups() const { return groups_; }

  /// False when a limit is passed. Values of a wrong type and unknown keys are noted.
  /// `more`: of the last entry, which goes on.
  [[nodiscard]] bool Read(std::span<const Value> items, bool more, evidence::FlightEntry& entry);

  /// Of an entry that was read elsewhere: its group, for what may follow.
  void SetLastGroup(const GroupKey& group) { group_ = group; }
  uint32_t GroupIndex(const GroupKey& key);  ///< Into groups(), to which it is added when new.
  /// nullopt when a limit is passed.
  std::optional<uint32_t> Joined(uint32_t list);  ///< The text of all texts of a list, comma-separated.
  static std::optional<int64_t> DurationNs(double milliseconds);

 private:
  void Set(DumpKey key, const Value& value, evidence::FlightEntry& entry);
  int64_t Count(DumpKey key, const Value& value);
  int64_t Scaled(DumpKey key, const Value& value, int64_t factor);
  int64_t Duration(const Value& value);
  uint32_t Text(DumpKey key, const Value& value);
  uint32_t Dtypes(DumpKey key, const Value& value);
  uint32_t List(DumpKey key, const Value& value, ValueKind kind);
  bool Bool(DumpKey key, const Value& value, bool& known);

  DumpTables& tables_;
  GroupKey group_;
  std::vector<GroupKey> groups_;
  ListTable<int64_t> group_ids_;
  std::vector<uint32_t> joined_;  // By list of texts: the text of all, comma-separated; 0 = not made yet.
  bool within_limits_ = true;
};

}  // namespace lockstep::ingest
