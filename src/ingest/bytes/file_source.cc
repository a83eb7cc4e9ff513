#include "ingest/bytes/file_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace lockstep::ingest {
namespace {

std::string ErrnoText(int number) { return std::generic_category().message(number); }

Error OpenError(const std::string& path, int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR: return {.code = ErrorCode::kNotFound, .message = "no such file; check the path", .file = path};
    case EACCES:
    case EPERM:
      return {.code = ErrorCode::kPermissionDenied,
              .message = "may not be read; make it readable, or run as the user who wrote it",
              .file = path};
    case EMFILE:
    case ENFILE: return {.code = ErrorCode::kIo, .message = "too many open files; raise `ulimit -n`", .file = path};
    default: return {.code = ErrorCode::kIo, .message = "cannot be opened: " + ErrnoText(number), .file = path};
  }
}

class RawFileSource final : public ByteSource {
 public:
  RawFileSource(OpenedFile file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Result<size_t> Read(std::span<char> window) override {
    size_t filled = 0;
    while (filled < window.size()) {
      const ssize_t got = ::read(file_.fd.get(), window.data() + filled, window.size() - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        // What was read stays read: the error comes again on the next call.
        if (filled > 0) break;
        return Error{.code = ErrorCode::kIo,
                     .message = "cannot be read: " + ErrnoText(errno) + "; check the disk or the network file system",
                     .file = path_,
                     .byte_offset = consumed_};
      }
      if (got == 0) break;
      filled += static_cast<size_t>(got);
      consumed_ += static_cast<uint64_t>(got);
    }
    return filled;
  }

  uint64_t consumed_bytes() const override { return consumed_; }
  uint64_t total_bytes() const override { return file_.size_bytes; }

 private:
  OpenedFile file_;
  std::string path_;
  uint64_t consumed_ = 0;
};

class RawMemorySource final : public ByteSource {
 public:
  explicit RawMemorySource(std::string bytes) : bytes_(std::move(bytes)) {}

  Result<size_t> Read(std::span<char> window) override {
    const size_t count = std::min(window.size(), bytes_.size() - position_);
    if (count > 0) std::memcpy(window.data(), bytes_.data() + position_, count);
    position_ += count;
    return count;
  }

  uint64_t consumed_bytes() const override { return position_; }
  uint64_t total_bytes() const override { return bytes_.size(); }

 private:
  std::string bytes_;
  size_t position_ = 0;
};

}  // namespace

Result<OpenedFile> OpenRegularFile(const std::string& path) {
  // O_NONBLOCK so that opening a FIFO or a terminal returns at once; it has no effect on regular files.
  OpenedFile file{.fd = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK))};
  if (!file.fd.valid()) return OpenError(path, errno);
  struct stat status = {};
  if (::fstat(file.fd.get(), &status) != 0) return OpenError(path, errno);
  if (!S_ISREG(status.st_mode)) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = S_ISDIR(status.st_mode)
                                ? "is a folder, not a file"
                                : "is not a regular file (a pipe, socket or device); write it to a file first",
                 .file = path};
  }
  file.size_bytes = static_cast<uint64_t>(status.st_size);
  ::posix_fadvise(file.fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return file;
}

Result<std::unique_ptr<ByteSource>> OpenRawFile(const std::string& path, uint64_t offset) {
  ASSIGN_OR_RETURN(OpenedFile file, OpenRegularFile(path));
  if (offset != 0 && ::lseek(file.fd.get(), static_cast<off_t>(offset), SEEK_SET) < 0) {
    return Error{.code = ErrorCode::kIo, .message = "cannot seek: " + ErrnoText(errno), .file = path};
  }
  return std::make_unique<RawFileSource>(std::move(file), path);
}

std::unique_ptr<ByteSource> RawMemory(std::string bytes) { return std::make_unique<RawMemorySource>(std::move(bytes)); }

}  // namespace lockstep::ingest
