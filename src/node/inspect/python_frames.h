#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/evidence/stack.h"
#include "node/inspect/python_layout.h"

namespace lockstep::inspect {

/// Python frames of every thread of a process, read from its memory without stopping it, and who holds the
/// interpreter's lock. The memory may be anything and may change meanwhile: every pointer is followed a bounded number
/// of times, a frame only counts when its code object is one, and a thread whose frames change between readings is left
/// out. Threads have tid, frames, holds_gil and source "cpython". Errors: ReadLayout's, kCorruptData.
Result<std::vector<evidence::ThreadStack>> ReadPythonThreads(pid_t pid, const PythonSymbols& symbols,
                                                             const PythonLayout& layout);

/// Line of the instruction `unit` (16-bit words from the first one) by a code object's location table (PEP 626, as
/// CPython 3.11 and later have it); nullopt: it has none.
std::optional<int32_t> LineOf(std::string_view table, int32_t first_line, uint64_t unit);

struct PythonStacks {
  std::vector<evidence::ThreadStack> threads;
  std::string reason;  ///< Why there are none; "" = there are.
  std::string remedy;
};
/// All of it in workers: finds the interpreter, reads its frames; py-spy where it is in PATH and this does not know the
/// version.
PythonStacks ReadPythonStacks(pid_t pid, int64_t deadline_monotonic_ns);

}  // namespace lockstep::inspect
