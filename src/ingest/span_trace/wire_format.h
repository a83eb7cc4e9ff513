#pragma once

#include <cstdint>

/// The bytes of a span trace, version 1; docs/formats/span-trace.md. Little-endian.
namespace lockstep::ingest::span_trace {

inline constexpr char kMagic[] = "LSSPAN\r\n";
inline constexpr uint32_t kVersion = 1;
inline constexpr uint64_t kHeaderBytes = 4096;
inline constexpr uint64_t kPageBytes = 4096;

struct Anchor {
  uint64_t tick = 0;
  int64_t monotonic_ns = 0;
  int64_t wall_ns = 0;
  uint64_t bracket_ticks = 0;
};

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  int32_t rank;
  int32_t world_size;
  int32_t local_rank;
  uint32_t clock;
  uint64_t process_id;
  uint64_t parent_id;
  uint64_t limit_bytes;
  uint64_t dropped_records;
  uint64_t dropped_names;
  uint64_t used_bytes;
  Anchor begin;
  Anchor end;
  char host[256];
  char program[256];
  uint32_t keeps_newest;  ///< 1: the oldest whole chunks may have been overwritten.
  uint32_t reserved;
  uint64_t overwritten_chunks;
};
static_assert(sizeof(Header) == 672);

inline constexpr uint32_t kChunkMagic = 0x4b48434c;
inline constexpr uint32_t kRecordChunk = 1;
inline constexpr uint32_t kNameChunk = 2;
inline constexpr uint32_t kMostChunkBytes = uint32_t{64} << 10;

struct ChunkHeader {
  uint32_t magic;
  uint32_t size_bytes;
  uint32_t kind;
  uint32_t thread_number;
  uint64_t thread_id;
  uint64_t chunk_number;
  Anchor anchor;
  char thread_name[16];
  uint64_t is_copy;  ///< 1: a whole chunk at the end of the file, which will not change.
  uint64_t reserved;
};
static_assert(sizeof(ChunkHeader) == 96);

struct Slot {
  uint64_t tick;
  uint64_t word;

  uint64_t kind() const { return word & 15; }
  uint32_t name() const { return static_cast<uint32_t>(word >> 4 & 0xfffff); }
  uint64_t payload() const { return word >> 24; }
};
static_assert(sizeof(Slot) == 16);

inline constexpr uint64_t kOpen = (uint64_t{1} << 40) - 1;
inline constexpr uint64_t kLong = kOpen - 1;
inline constexpr int kSlotBits = 12;

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
