#include "ingest/flight_recorder/dump_notes.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace lockstep::ingest {

void DumpNotes::UnknownKey(std::string_view where, std::string_view key) { AddUnknown(where, key, 1); }

void DumpNotes::AddUnknown(std::string_view where, std::string_view key, uint64_t count) {
  const std::string name = fmt::format("{} has the unknown key \"{}\"", where, Printable(key.substr(0, 64)));
  if (const auto known = unknown_keys_.find(name); known != unknown_keys_.end()) {
    known->second += count;
  } else if (unknown_keys_.size() < kMaxNotes / 2) {
    unknown_keys_.emplace(name, count);
  } else {
    more_unknown_keys_ += count;
  }
}

std::vector<std::string> DumpNotes::Take(const DumpTexts& texts) {
  for (uint32_t text = 0; text < unknown_in_entries_.size(); ++text) {
    if (unknown_in_entries_[text] != 0) AddUnknown("an entry", texts[text], unknown_in_entries_[text]);
  }
  std::vector<std::string> notes = std::move(said_);
  for (size_t i = 0; i < wrong_types_.size(); ++i) {
    if (wrong_types_[i] == 0) continue;
    notes.push_back(fmt::format("\"{}\" has an impossible value, {}; taken as unknown",
                                DumpKeyName(static_cast<DumpKey>(i)),
                                wrong_types_[i] == 1 ? "once" : fmt::format("{} times", wrong_types_[i])));
  }
  for (const auto& [name, count] : unknown_keys_) {
    notes.push_back(count == 1 ? name : fmt::format("{}, {} times", name, count));
  }
  if (more_unknown_keys_ > 0) notes.push_back(fmt::format("more unknown keys, {} times", more_unknown_keys_));
  if (notes.size() > kMaxNotes) {
    const size_t left_out = notes.size() - (kMaxNotes - 1);
    notes.resize(kMaxNotes - 1);
    notes.push_back(fmt::format("and {} more of these notes", left_out));
  }
  return notes;
}

}  // namespace lockstep::ingest
