#pragma once

#include <string.h>

#include <string>

namespace lockstep {

/// "SIGSEGV"; "signal 99" for one that has no name.
inline std::string SignalName(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

}  // namespace lockstep
