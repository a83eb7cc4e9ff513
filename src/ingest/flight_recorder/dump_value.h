#pragma once

#include <cstdint>

#include "ingest/flight_recorder/dump_keys.h"

namespace lockstep::ingest {

/// What a value of a dump is. The meaning of lists and dicts is found from their content when they are filled; no tree
/// is kept.
enum class ValueKind : uint8_t {
  kUnset,  ///< Only in the memo.
  kNone,
  kBool,   ///< bits: 0 or 1.
  kInt,    ///< bits: the number.
  kFloat,  ///< bits: those of a double.
  kText,   ///< bits: into DumpTexts.
  kEmptyList,
  kInts,       ///< bits: into the lists of numbers. A shape.
  kSizes,      ///< bits: into the lists of shapes.
  kTexts,      ///< bits: into the lists of texts.
  kFrames,     ///< bits: into the lists of frames. A stack.
  kEntries,    ///< bits: into the lists of entries.
  kDicts,      ///< bits: into the lists of dicts that are kept. Dumps, where a file holds several.
  kOtherList,  ///< Anything else; its content is gone.
  kEmptyDict,
  kFrame,      ///< bits: into the frames.
  kEntry,      ///< bits: into FlightRecord::entries.
  kOtherDict,  ///< bits: into the dicts that are kept as they are.
};

constexpr bool IsContainer(ValueKind kind) { return kind >= ValueKind::kEmptyList; }
constexpr bool IsList(ValueKind kind) { return kind >= ValueKind::kEmptyList && kind <= ValueKind::kOtherList; }
constexpr bool IsDict(ValueKind kind) { return kind >= ValueKind::kEmptyDict; }

struct Value {
  ValueKind kind = ValueKind::kUnset;
  uint8_t depth = 0;              ///< Lists and dicts inside each other, itself included; 0 of anything else.
  DumpKey key = DumpKey::kOther;  ///< Of a text: what it means as a key.
  uint32_t memo = 0;              ///< Of a container: its number in the memo + 1; 0 = it has none. See DumpStack.
  int64_t bits = 0;

  uint32_t idx() const { return static_cast<uint32_t>(bits); }
};

struct DictItem {
  Value key;
  Value value;
};
static_assert(sizeof(Value) == 16 && sizeof(DictItem) == 32);

}  // namespace lockstep::ingest
