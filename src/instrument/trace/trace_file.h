#pragma once

#include <pthread.h>
#include <stddef.h>

#include <cstdint>

#include "instrument/trace/file_format.h"

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

  /// A mapped chunk of about `wanted` bytes, zeros, writable without a page fault.
  Chunk Take(uint32_t wanted_bytes);
  /// The rest of a chunk whose thread has ended is handed out again. In: zeros.
  void GiveBack(Slot* rest, uint32_t bytes);
  /// Copies a chunk to the file's end. False: there is no room, and none will be.
  bool Append(const ChunkHeader* chunk);

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
  static constexpr int kMostSegments = 4096;
  static constexpr int kMostRests = 256;

  bool Grow();
  uint64_t ReserveBytes(uint64_t bytes);
  void BecomeFull() { __atomic_store_n(&is_full_, true, __ATOMIC_RELAXED); }
  void CountDrop(uint64_t FileHeader::*count, uint64_t* unseen);
  int MakeFile(const FileSettings& settings, int32_t rank);

  pthread_mutex_t mutex_;
  int fd_;
  FileHeader* header_;
  char path_[4096];
  uint64_t limit_bytes_;
  bool is_full_;
  Segment segments_[kMostSegments];
  int segment_count_;
  uint64_t used_of_last_;  ///< Bytes of the last segment.
  uint64_t end_;           ///< Of the file.
  Rest rests_[kMostRests];
  int rest_count_;
  uint64_t chunk_count_;
  uint64_t unseen_drops_;  ///< While there is no header to count in.
};

}  // namespace lockstep::instrument
