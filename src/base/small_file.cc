#include "base/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/unique_fd.h"

namespace lockstep {

std::optional<std::string> ReadSome(int fd, size_t limit_bytes) {
  std::string text;
  std::array<char, 16384> chunk;
  while (text.size() < limit_bytes) {
    const ssize_t size = ::read(fd, chunk.data(), std::min(chunk.size(), limit_bytes - text.size()));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && text.empty()) return std::nullopt;
    if (size <= 0) break;
    text.append(chunk.data(), static_cast<size_t>(size));
  }
  return text;
}

std::optional<std::string> ReadSmallFile(const std::string& path, size_t limit_bytes) {
  // Not to wait for the other end of a pipe.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return std::nullopt;
  return ReadSome(fd.get(), limit_bytes);
}

}  // namespace lockstep
