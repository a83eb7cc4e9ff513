#pragma once

#include <pthread.h>

#include <cstdint>

#include "inside/trace/file_format.h"
#include "inside/trace/name_table.h"
#include "inside/trace/trace_file.h"

namespace lockstep::instrument {

/// Where a thread writes. All zeros: nowhere yet. In the thread's fixed storage, so that reaching it costs one load.
struct ThreadState {
  Slot* next;
  Slot* limit;
  Slot* begin;
  uint64_t chunk_number;
  ChunkHeader* header;
  uint32_t number;
  uint32_t chunk_count;
};
extern __thread ThreadState thread_state __attribute__((tls_model("initial-exec")));

/// When, in ticks, clocks are next to be read together. Threads only compare with it.
extern uint64_t anchor_due;

/// The process's recording: settings, file, names, and what several threads share.
class Recorder {
 public:
  /// Once, before threads record.
  void Configure(const char* folder, uint64_t limit_bytes, bool keeps_newest);
  bool is_configured() const { return settings_.folder[0] != '\0'; }

  TraceFile& file() { return file_; }
  NameTable& names() { return names_; }

  /// Room for `count` slots for the calling thread, and not given out yet; null: dropped and counted.
  Slot* Refill(uint32_t count);
  /// The thread ends.
  void EndThread();

  /// Ends a span of another chunk, by a record of its own.
  void FinishElsewhere(uint64_t place, uint64_t now);
  void WriteAnchor();

  void Step(bool begins, const int64_t* number);

  void Close();
  void BeforeFork();
  void AfterFork(bool in_child);

 private:
  bool OpenFile();
  void BeginChunk(const Chunk& chunk);
  /// Under step_mutex_: a second has gone by since the last time.
  bool IsMemoryDue(uint64_t now);
  void WriteMemory();
  void LeaveChunk();

  pthread_mutex_t mutex_;  ///< Taken before those of names and file.
  FileSettings settings_;
  bool failed_;
  uint32_t thread_count_;
  pthread_key_t thread_key_;
  bool has_thread_key_;
  uint64_t anchor_step_;  ///< Ticks from one anchor to the next; grows to a second.
  TraceFile file_;
  NameTable names_;

  pthread_mutex_t step_mutex_;
  uint64_t step_;  ///< Place of the one that is under way, or 0.
  int64_t next_step_;
  uint64_t memory_tick_;  ///< Not before it is the time looked at:
  int64_t memory_ns_;     ///< of the monotonic clock, when memory is measured next; 0: not known.
};

extern Recorder recorder;

/// Room for a record of `count` slots.
inline Slot* Reserve(uint32_t count) {
  Slot* slot = thread_state.next;
  const uint64_t room = reinterpret_cast<uintptr_t>(thread_state.limit) - reinterpret_cast<uintptr_t>(slot);
  if (__builtin_expect(room < count * sizeof(Slot), 0)) {
    slot = recorder.Refill(count);
    if (slot == nullptr) return nullptr;
  }
  thread_state.next = slot + count;
  return slot;
}

/// The word makes a record visible, so it is written last.
inline void Publish(Slot* slot, uint64_t word) { __atomic_store_n(&slot->word, word, __ATOMIC_RELEASE); }

/// Of a record that was just reserved by this thread.
inline uint64_t PlaceOf(const Slot* slot) {
  return thread_state.chunk_number << kSlotBits | static_cast<uint64_t>(slot - thread_state.begin);
}

inline void Finish(uint64_t place, uint64_t now) {
  if (__builtin_expect(place >> kSlotBits == thread_state.chunk_number, 1)) {
    Slot* const slot = thread_state.begin + (place & (kMostSlots - 1));
    const uint64_t duration = now - slot->tick;
    if (__builtin_expect(duration < kLong, 1)) {
      const uint64_t kind_and_name = slot->word & ((uint64_t{1} << kPayloadShift) - 1);
      __atomic_store_n(&slot->word, kind_and_name | duration << kPayloadShift, __ATOMIC_RELAXED);
      return;
    }
  }
  recorder.FinishElsewhere(place, now);
}

}  // namespace lockstep::instrument
