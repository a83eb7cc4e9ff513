#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/inspect/worker.h"

namespace lockstep::inspect {

/// A thread's registers, by DWARF number, and the top of its stack at one moment.
struct ThreadSnapshot {
  static constexpr size_t kRegisterCount = 17;  ///< x86-64: 16 general ones and the return address column, rip.
  static constexpr size_t kStackPointer = 7;
  static constexpr size_t kProgramCounter = 16;

  pid_t tid = 0;
  std::array<std::optional<uint64_t>, kRegisterCount> registers = {};
  uint64_t stack_address = 0;
  std::string stack = {};  ///< From stack_address on.
  int64_t pause_ns = 0;    ///< For which the thread was held, at most; 0 = it was not.
};

constexpr size_t kStackBytes = size_t{512} << 10;  ///< That are copied of a stack, at most.

/// Whether this build knows this machine's registers.
bool CanTakeSnapshots();

/// A thread that sleeps in the kernel, without touching it: the kernel tells its stack pointer and program counter.
/// Registers that only a stopped thread shows stay unknown, which most stacks do without. Nullopt: it runs, ran
/// meanwhile, or may not be looked at.
std::optional<ThreadSnapshot> SnapshotSleeping(pid_t pid, pid_t tid);

struct HeldThreads {
  std::vector<ThreadSnapshot> snapshots;
  struct Refused {
    pid_t tid = 0;
    int error = 0;  ///< errno; 0 = it did not stop, or was not copied, within the time.
  };
  std::vector<Refused> refused;
  int64_t longest_pause_ns = 0;
};
/// Holds one thread after the other, each for the copy of its registers and stack, and lets it go. The tracer is a
/// process of its own with a kernel timer that kills it `longest_pause_ns` after it has begun with a thread; threads of
/// a dead tracer go on, so the bound holds whatever the tracer or its memory reads do. Blocks until
/// `deadline_monotonic_ns` at most.
HeldThreads HoldThreads(pid_t pid, std::vector<pid_t> tids, int64_t longest_pause_ns, int64_t deadline_monotonic_ns);

}  // namespace lockstep::inspect
