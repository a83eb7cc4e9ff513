#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/flight_recorder/dump_keys.h"
#include "ingest/flight_recorder/dump_texts.h"

namespace lockstep::ingest {

/// Counts oddities of a dump that do not stop the reading.
class DumpNotes {
 public:
  void WrongType(DumpKey key) { ++wrong_types_[static_cast<size_t>(key)]; }
  void UnknownKey(std::string_view where, std::string_view key);
  /// The same of an entry, by the key's number among the texts: there are many entries.
  void UnknownEntryKey(uint32_t text) {
    if (unknown_in_entries_.size() <= text) unknown_in_entries_.resize(text + 1, 0);
    ++unknown_in_entries_[text];
  }
  void Say(std::string sentence) { said_.push_back(std::move(sentence)); }

  /// One sentence a kind, at most kMaxNotes.
  std::vector<std::string> Take(const DumpTexts& texts);

  static constexpr size_t kMaxNotes = 32;

 private:
  void AddUnknown(std::string_view where, std::string_view key, uint64_t count);

  std::array<uint64_t, kDumpKeyCount> wrong_types_ = {};
  std::map<std::string, uint64_t, std::less<>> unknown_keys_;  // By "entry's key 'x'".
  std::vector<uint64_t> unknown_in_entries_;                   // By text.
  uint64_t more_unknown_keys_ = 0;
  std::vector<std::string> said_;
};

}  // namespace lockstep::ingest
