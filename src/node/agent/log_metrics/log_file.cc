#include "node/agent/log_metrics/log_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace lockstep::agent {

LogFile::LogFile(UniqueFd fd, Identity identity, bool begins_at_end) : fd_(std::move(fd)), identity_(identity) {
  struct stat info = {};
  if (begins_at_end && ::fstat(fd_.get(), &info) == 0)
    offset_ = static_cast<uint64_t>(std::max<off_t>(info.st_size, 0));
}

LogFile::Look LogFile::ReadOn(const std::function<void()>& on_break,
                              const std::function<void(std::string_view)>& take) {
  Look look;
  struct stat info = {};
  if (::fstat(fd_.get(), &info) != 0 || info.st_size < 0) return look;
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size < offset_) {
    offset_ = 0;
    look.breaks = true;
  }
  if (size - offset_ > kMostBehindBytes) {
    look.skipped_bytes = size - kMostLogBytes - offset_;
    offset_ = size - kMostLogBytes;
    look.breaks = true;
  }
  if (look.breaks) on_break();
  std::array<char, size_t{64} << 10> piece;
  for (uint64_t read = 0; read < kMostLogBytes && offset_ < size;) {
    const size_t wanted = std::min<uint64_t>({piece.size(), size - offset_, kMostLogBytes - read});
    const ssize_t got = ::pread(fd_.get(), piece.data(), wanted, static_cast<off_t>(offset_));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    take({piece.data(), static_cast<size_t>(got)});
    offset_ += static_cast<uint64_t>(got);
    read += static_cast<uint64_t>(got);
  }
  return look;
}

}  // namespace lockstep::agent
