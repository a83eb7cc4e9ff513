#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace lockstep {

/// This machine's name as the kernel has it; `unknown` where that does not say.
inline std::string HostName(const char* unknown = "") {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : unknown;
}

}  // namespace lockstep
