#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/flight_recorder/dump_keys.h"
#include "ingest/flight_recorder/list_table.h"

namespace lockstep::ingest {

/// All texts of one dump, valid UTF-8, each once, with what it means as a key. [0] is empty. One thread.
class DumpTexts {
 public:
  std::string_view operator[](uint32_t idx) const { return table_[idx]; }
  DumpKey key(uint32_t idx) const { return keys_[idx]; }
  uint32_t size() const { return table_.size(); }

  uint32_t Add(std::string_view text);      ///< `text` stays where it is for as long as this lives.
  uint32_t AddCopy(std::string_view text);  ///< Copies `text` when it is new.

 private:
  uint32_t Keep(std::string_view text);

  TextTable table_;
  std::vector<DumpKey> keys_ = {DumpKey::kOther};
  std::deque<std::string> kept_;
};

}  // namespace lockstep::ingest
