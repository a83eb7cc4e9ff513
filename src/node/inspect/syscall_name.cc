#include "node/inspect/syscall_name.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <unordered_map>

namespace lockstep::inspect {

std::string SyscallName(int64_t number) {
  if (number < 0) return {};
  static const auto* const kNames = new std::unordered_map<int64_t, const char*>{
#include <syscalls.inc>  // Made by CMake of this machine's headers.
  };
  const auto found = kNames->find(number);
  return found == kNames->end() ? fmt::format("syscall_{}", number) : found->second;
}

}  // namespace lockstep::inspect
