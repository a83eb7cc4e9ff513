#pragma once

#include <pthread.h>
#include <stddef.h>

#include <cstdint>

#include "inside/trace/file_format.h"

namespace lockstep::instrument {

/// What a thread was given to write into.
struct Chunk {
  ChunkHeader* header = nullptr;  ///< Null: there is no more.
  uint32_t size_bytes = 0;
};

/// Without a constructor: see TraceFile.
struct FileSettings {
  char folder[3072];
  uint64_t limit_bytes;
  bool keeps_newest;   ///< At the limit the oldest give way, not the newest.
  uint64_t parent_id;  ///< As in FileHeader.
  ClockKind clock;
};

/// The file of this process. Threads write into chunks of it that are mapped, so that no end of the process loses what
/// was written; full ones are copied to the file's end by plain writes, and the mapped memory is used again: that costs
/// a third of what faulting in every page of a growing mapping does. Space for mapped chunks is promised by the file
/// system first: a full disk is an error of a call here, never a signal.
/// Constructed by zeros alone, so that it works before any constructor has run. Thread-safe.
class TraceFile {
 public:
  /// Makes the file. False: it could not be, which was said on stderr.
  bool Open(const FileSettings& settings);
  bool is_open() const { return __atomic_load_n(&header_, __ATOMIC_ACQUIRE) != nullptr; }
  /// The disk or the limit: nothing is handed out any more.
  bool is_full() const { return __atomic_load_n(&is_full_, __ATOMIC_RELAXED); }
  const char* path() const { return path_; }

  /// A mapped chunk of about `wanted` bytes, and no less than `least`: zeros, writable without a page fault. Where the
  /// newest are kept, it may be one that was left longest ago.
  Chunk Take(uint32_t wanted_bytes, uint32_t least_bytes);
  /// The chunk will not be written any more. `rest`: its part that is still zeros, which is handed out again.
  void Leave(ChunkHeader* chunk, Slot* rest, uint32_t rest_bytes);
  /// Copies a chunk to the file's end, or over the oldest copy. If as many threads copy as there are places, this chunk
  /// counts as overwritten. False: there is no room, and none will be.
  bool Append(const ChunkHeader* chunk);
  bool keeps_newest() const { return keeps_newest_; }

  void CountDroppedRecord() { CountDrop(&FileHeader::dropped_records, &unseen_drops_); }
  void CountDroppedName() { CountDrop(&FileHeader::dropped_names, &unseen_drops_); }
  uint64_t dropped_records() const;
  uint64_t used_bytes() const;
  /// From 1. Goes on after a fork, so that no number of the parent's comes again.
  uint64_t NextChunkNumber() { return __atomic_add_fetch(&chunk_count_, 1, __ATOMIC_RELAXED); }

  /// The process ends in order: says so, and cuts what was never handed out.
  void Close(const Anchor& end);

  /// In the child of a fork: forgets the file, which is the parent's.
  void Abandon();

  /// Around fork, so that no other thread holds the lock in the child.
  void Lock() { pthread_mutex_lock(&mutex_); }
  void Unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  struct Segment {
    char* base;
    uint64_t offset;
    uint64_t size_bytes;
  };
  struct Rest {
    Slot* begin;
    uint32_t size_bytes;
  };
  /// The place of a copy that may be overwritten.
  struct Copy {
    uint32_t page;
    bool is_busy;  ///< A thread writes there, without the lock.
  };
  static constexpr int kMostSegments = 4096;
  static constexpr int kMostRests = 256;
  static constexpr uint32_t kMostLeft = 4096;

  static constexpr uint64_t kCopyBytes = uint64_t{64} << 10;  ///< Of the place of any copy that may be overwritten.
  static constexpr uint32_t kMostCopies = 4096;

  bool Grow();
  Chunk TakeRest(uint32_t least_bytes);
  Chunk TakeLeft(uint32_t least_bytes);
  uint64_t ReserveBytes(uint64_t bytes);
  Copy* ReserveCopy();
  bool WriteCopy(uint64_t offset, const ChunkHeader* chunk, uint64_t place_bytes);
  bool WriteAt(uint64_t offset, const void* bytes, uint64_t count);
  void BecomeFull() { __atomic_store_n(&is_full_, true, __ATOMIC_RELAXED); }
  void CountDrop(uint64_t FileHeader::*count, uint64_t* unseen);
  int MakeFile(const FileSettings& settings, int32_t rank);

  pthread_mutex_t mutex_;
  int fd_;
  FileHeader* header_;
  char path_[4096];
  uint64_t limit_bytes_;
  bool is_full_;
  bool keeps_newest_;
  bool cannot_grow_;
  Copy copies_[kMostCopies];
  uint32_t copy_count_;
  uint32_t next_copy_;
  Segment segments_[kMostSegments];
  int segment_count_;
  uint64_t mapped_bytes_;  ///< Of all segments.
  uint64_t used_of_last_;  ///< Bytes of the last segment.
  uint64_t end_;           ///< Of the file.
  Rest rests_[kMostRests];
  int rest_count_;
  Rest left_[kMostLeft];  ///< Chunks that are not being written, in a circle: the next to be used again, and how many.
  uint32_t next_left_;
  uint32_t left_count_;
  uint64_t chunk_count_;
  uint64_t unseen_drops_;  ///< While there is no header to count in.
};

}  // namespace lockstep::instrument
