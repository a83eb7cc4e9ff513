#pragma once

#include <cstdint>

/// The bytes of a span trace, as docs/formats/span-trace.md tells them. Little-endian, as the machine writes them.
namespace lockstep::instrument {

constexpr char kFileMagic[8] = {'L', 'S', 'S', 'P', 'A', 'N', '\r', '\n'};
constexpr uint32_t kFileVersion = 1;
constexpr uint32_t kHeaderBytes = 4096;
constexpr uint32_t kPageBytes = 4096;  ///< A chunk begins at a multiple of it, or where the one before it ends.

/// What three clocks said at one instant.
struct Anchor {
  uint64_t tick;
  int64_t monotonic_ns;
  int64_t wall_ns;
  uint64_t bracket_ticks;  ///< Within which all three were read.
};

enum class ClockKind : uint32_t { kMonotonic = 1, kTimeStampCounter = 2, kArmCounter = 3 };

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  int32_t rank;  ///< -1: unknown, like the next two.
  int32_t world_size;
  int32_t local_rank;
  ClockKind clock;
  uint64_t process_id;
  uint64_t parent_id;  ///< Of the process that forked this one while it recorded; 0: none.
  uint64_t limit_bytes;
  uint64_t dropped_records;  ///< Grows.
  uint64_t dropped_names;    ///< Grows.
  uint64_t used_bytes;       ///< Grows: no chunk lies beyond.
  Anchor begin;
  Anchor end;      ///< All 0 until the process ends in order.
  char host[256];  ///< Zero-terminated, like the next.
  char program[256];
  uint32_t keeps_newest;  ///< 1: what there is no room for takes the place of the oldest.
  uint32_t reserved;
  uint64_t overwritten_chunks;  ///< Grows.
};
static_assert(sizeof(FileHeader) <= kHeaderBytes);

constexpr uint32_t kChunkMagic = 0x4b48434c;  // "LCHK"
enum class ChunkKind : uint32_t { kRecords = 1, kNames = 2 };

struct ChunkHeader {
  uint32_t magic;  ///< Written last.
  uint32_t size_bytes;
  ChunkKind kind;
  uint32_t thread_number;  ///< From 1, by first record: thread ids are used again.
  uint64_t thread_id;
  uint64_t chunk_number;  ///< From 1, in order of being begun. Of two of one number the one with more records is meant.
  Anchor anchor;
  char thread_name[16];
  uint64_t is_copy;  ///< 1: will not be written again.
  uint64_t reserved;
};
static_assert(sizeof(ChunkHeader) == 96);

/// Records are made of these. A record is whole once the low four bits of its first word are not 0.
struct Slot {
  uint64_t tick;
  uint64_t word;  ///< Kind: 4 bits, name: 20, then 40 by kind.

  uint64_t kind() const { return word & 15; }
  uint32_t name() const { return static_cast<uint32_t>(word >> 4 & 0xfffff); }
  uint64_t payload() const { return word >> 24; }
};
static_assert(sizeof(Slot) == 16);

enum class RecordKind : uint64_t {
  kNone = 0,
  kSpan = 1,            ///< 1 slot; 40 bits: duration.
  kMark = 2,            ///< 1 slot.
  kCounterInteger = 3,  ///< 1 slot; 40 bits: value.
  kCounter = 4,         ///< 2 slots; second: the value as double, 0.
  kStep = 5,            ///< 2 slots; 40 bits: duration; second: number, 0.
  kRequestBegin = 6,    ///< 2 slots; second: request, 0.
  kRequestOutput = 7,   ///< 2 slots; second: request, count.
  kRequestEnd = 8,      ///< 2 slots; 40 bits: 1 = failed; second: request, 0.
  kLink = 9,            ///< 3 slots after a span's or a request's: span id; trace id (two words); parent's span id, 0.
  kEnd = 10,            ///< 2 slots: end of a span of another chunk, or a long one; second: its place, 0.
  kAnchor = 11,         ///< 2 slots; 40 bits: bracket; second: monotonic ns, wall ns.
};

constexpr int kNameShift = 4;
constexpr int kPayloadShift = 24;
constexpr uint64_t kMaxName = (uint64_t{1} << 20) - 1;
constexpr uint64_t kMaxPayload = (uint64_t{1} << 40) - 1;
constexpr uint64_t kOpen = kMaxPayload;      ///< A duration: not ended.
constexpr uint64_t kLong = kMaxPayload - 1;  ///< A duration: a kEnd says it.

/// A record's place: the number of its chunk, and its slot there.
constexpr int kSlotBits = 12;
constexpr uint32_t kMostSlots = uint32_t{1} << kSlotBits;

constexpr uint64_t Word(RecordKind kind, uint64_t name, uint64_t payload) {
  return static_cast<uint64_t>(kind) | name << kNameShift | payload << kPayloadShift;
}

/// In chunks of names, one after the other, each padded to 8 bytes. Whole once `head` is not 0.
struct NameEntry {
  uint64_t head;  ///< Number in the lower half, bytes of text in the upper.
};

}  // namespace lockstep::instrument
