#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/flight_recorder/dump_notes.h"
#include "ingest/flight_recorder/dump_texts.h"
#include "ingest/flight_recorder/dump_value.h"
#include "ingest/flight_recorder/list_table.h"
#include "model/evidence/flight_record.h"

namespace lockstep::ingest {

/// Everything that entries refer to, each content once, while one dump is read. One thread.
struct DumpTables {
  /// `byte_count`: of the dump; what sharing may multiply is bounded by it.
  explicit DumpTables(size_t byte_count) : copy_limit(uint64_t{16} * byte_count + 4096) {}

  /// False when content that the dump holds once is asked for so often that it would outgrow the dump.
  bool Charge(uint64_t item_count) { return (copied += item_count) <= copy_limit; }

  DumpTexts texts;
  ListTable<int64_t> numbers;       ///< Shapes.
  ListTable<uint32_t> size_lists;   ///< Of shapes.
  ListTable<uint32_t> text_lists;   ///< Of texts.
  ListTable<uint32_t> stacks;       ///< Of frames.
  ListTable<uint32_t> frame_parts;  ///< {function, file, line} by frame; [0] is none.
  std::vector<std::vector<uint32_t>> entry_lists;
  std::vector<std::vector<uint32_t>> dict_lists;
  std::vector<std::vector<DictItem>> dicts;
  DumpNotes notes;
  uint64_t copied = 0;
  uint64_t copy_limit;
};

}  // namespace lockstep::ingest
