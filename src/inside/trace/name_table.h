#pragma once

#include <pthread.h>
#include <stddef.h>

#include <cstdint>

namespace lockstep::instrument {

class TraceFile;

/// Texts of the process by number, from 1. Numbers stay for the life of the process and of those that it forks, so that
/// programs may keep them; every file has the texts of its own. Constructed by zeros alone. Thread-safe.
class NameTable {
 public:
  /// 0 for an empty text. When there are too many, or no memory is left, the number of "(other names)".
  uint32_t NumberOf(const char* text, size_t bytes, TraceFile* file);

  /// Writes every text so far into a file that was just made, and each new one from now on.
  void BeginFile(TraceFile* file);
  /// In the child of a fork.
  void Abandon() { next_ = end_ = nullptr; }

  void Lock() { pthread_mutex_lock(&mutex_); }
  void Unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  struct Entry {
    const char* text;
    uint32_t bytes;
    uint32_t hash;
  };

  uint32_t Add(const char* text, uint32_t bytes, uint32_t hash);
  bool MakeRoom();
  void Write(uint32_t number, TraceFile* file);

  pthread_mutex_t mutex_;
  Entry* entries_;  ///< By number; the first is none.
  uint32_t count_;
  uint32_t capacity_;
  uint32_t* buckets_;  ///< Numbers by hash, open addressing; twice the capacity.
  char* next_;         ///< In the file's present chunk of names; null: there is none.
  char* end_;
  uint32_t chunk_bytes_;
};

}  // namespace lockstep::instrument
