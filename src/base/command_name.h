#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "base/small_file.h"

namespace lockstep {

/// What the kernel calls a process, at most 15 bytes; empty: it is gone.
inline std::string CommandName(int32_t pid) {
  const std::string text = ReadSmallFile(fmt::format("/proc/{}/comm", pid)).value_or("");
  return text.substr(0, text.find('\n'));
}

}  // namespace lockstep
