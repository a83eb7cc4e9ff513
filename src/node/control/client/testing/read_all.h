#pragma once

#include <unistd.h>

#include <string>

namespace lockstep::control::testing {

/// Up to the end, or to an error.
inline std::string ReadAll(int fd) {
  std::string text;
  char window[4096];
  for (ssize_t got = 0; (got = ::read(fd, window, sizeof(window))) > 0;) text.append(window, static_cast<size_t>(got));
  return text;
}

}  // namespace lockstep::control::testing
