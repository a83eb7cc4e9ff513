#pragma once

#include <cstdint>

namespace lockstep::instrument {

/// 0: not known.
struct ProcessMemory {
  uint64_t resident_bytes = 0;  ///< Of this process.
  uint64_t host_bytes = 0;      ///< That the machine has.
};
/// Keeps errno. Costs some microseconds.
ProcessMemory ReadProcessMemory();

}  // namespace lockstep::instrument
