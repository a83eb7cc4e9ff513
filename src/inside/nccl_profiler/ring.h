#pragma once

#include <cstdint>

#include "inside/nccl_profiler/ring_format.h"

namespace lockstep::instrument {

inline constexpr unsigned kMostPathBytes = 1024;

/// The file of this process, mapped. After Open nothing here allocates, locks or calls the system; any thread.
class Ring {
 public:
  /// In LOCKSTEP_NCCL_DIR, else in /dev/shm, for LOCKSTEP_NCCL_OPERATIONS operations (16384). False when there cannot
  /// be one: then nothing is recorded. `reuses_enqueued`: NCCL never reports when operations are over, so slots of
  /// operations that are enqueued may be reused.
  bool Open(int interface_version, bool records_steps, bool reuses_enqueued);
  bool is_open() const { return header_ != nullptr; }

  /// A new communicator's index, or -1 when there are too many.
  int AddCommunicator(uint64_t id, const char* name, int rank, int rank_count, int node_count);
  /// Of version 1 to 3, which tell a communicator with each operation.
  int FindOrAddCommunicator(uint64_t id, const char* name, int rank);
  void EndCommunicator(int index);
  RingCommunicator* communicator(int index) { return &communicators_[index]; }

  /// A free slot, cleared except for its number, which Publish writes; nullptr when none is free.
  RingOperation* Claim(uint64_t* number);
  /// The sums of a function on a communicator; index one up, 0 when there is no room. `function` is a RingOperation's.
  uint32_t FindOrAddTotal(uint32_t communicator, const char (&function)[24]);
  RingTotal* total(uint32_t one_up) { return one_up == 0 ? nullptr : &totals_[one_up - 1]; }
  /// An operation for which Claim had nothing: it counts on its communicator (if that is known: 0 or more).
  void CountDropped(int communicator, OperationKind kind);
  static void Publish(RingOperation* operation, uint64_t number);
  /// Of the process that opened it: asking the kernel each time would be a system call in NCCL's threads.
  int pid() const { return pid_; }
  bool Holds(const void* pointer) const;
  /// The file of a process that ends normally is not needed: it is removed, unless the user named a folder to keep it
  /// in.
  void RemoveAtExit();
  void CountDroppedStep() { __atomic_fetch_add(&header_->dropped_step_count, 1, __ATOMIC_RELAXED); }

 private:
  int pid_ = 0;
  RingHeader* header_ = nullptr;
  RingCommunicator* communicators_ = nullptr;
  RingOperation* operations_ = nullptr;
  RingTotal* totals_ = nullptr;
  bool reuses_enqueued_ = false;
  char path_[kMostPathBytes] = "";  ///< Set if the file is not to be kept.
};

int64_t MonotonicNs();

/// Copies as much as fits, and a zero byte. `text` may be null.
template <unsigned kSize>
void CopyText(const char* text, char (&to)[kSize]) {
  unsigned i = 0;
  if (text != nullptr) {
    for (; i + 1 < kSize && text[i] != '\0'; ++i) to[i] = text[i];
  }
  to[i] = '\0';
}

}  // namespace lockstep::instrument
