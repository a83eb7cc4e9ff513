#pragma once

#include <cstdint>
#include <string>

namespace lockstep::inspect {

/// "futex" for this machine's number of it; "syscall_NNN" for one that no list here has; "" for a negative number.
std::string SyscallName(int64_t number);

}  // namespace lockstep::inspect
