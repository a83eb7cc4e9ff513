#pragma once

#include <cstdint>
#include <string_view>

#include "inside/trace/file_format.h"

/// What liblockstep writes, under the names of those who read it: a file may hold any number where it has kinds.
namespace lockstep::ingest::span_trace {

using instrument::Anchor;
using instrument::ChunkHeader;
using instrument::ClockKind;
using instrument::kChunkMagic;
using instrument::kHeaderBytes;
using instrument::kLong;
using instrument::kOpen;
using instrument::kPageBytes;
using instrument::kSlotBits;
using instrument::Slot;
using Header = instrument::FileHeader;

inline constexpr std::string_view kMagic(instrument::kFileMagic, sizeof(instrument::kFileMagic));
inline constexpr uint32_t kVersion = instrument::kFileVersion;
inline constexpr auto kRecordChunk = instrument::ChunkKind::kRecords;
inline constexpr auto kNameChunk = instrument::ChunkKind::kNames;
inline constexpr uint32_t kMostChunkBytes = uint32_t{64} << 10;

enum RecordKind : uint64_t {
  kSpan = 1,
  kMark = 2,
  kCounterInteger = 3,
  kCounter = 4,
  kStep = 5,
  kRequestBegin = 6,
  kRequestOutput = 7,
  kRequestEnd = 8,
  kLink = 9,
  kEnd = 10,
  kAnchor = 11,
};

/// Slots of a record by kind; 0: there is no such kind.
inline constexpr uint32_t kSlotCounts[16] = {0, 1, 1, 1, 2, 2, 2, 2, 2, 3, 2, 2, 0, 0, 0, 0};

}  // namespace lockstep::ingest::span_trace
