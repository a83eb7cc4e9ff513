#include "present/export/timeline/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <isa-l.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

namespace lockstep::timeline {
namespace {

constexpr size_t kBlockBytes = size_t{256} << 10;

Error FileError(const std::string& path, const char* what, int error_number) {
  const ErrorCode code = error_number == ENOENT                            ? ErrorCode::kNotFound
                         : error_number == EACCES || error_number == EPERM ? ErrorCode::kPermissionDenied
                                                                           : ErrorCode::kIo;
  return {.code = code, .message = fmt::format("{}: {}", what, std::strerror(error_number)), .file = path};
}

class FdSink final : public ByteSink {
 public:
  FdSink(int fd, std::string name) : fd_(fd), name_(std::move(name)) { block_.reserve(kBlockBytes); }

  void Write(std::string_view bytes) override {
    if (block_.size() + bytes.size() > kBlockBytes) Flush();
    if (bytes.size() >= kBlockBytes) {
      WriteOut(bytes);
    } else {
      block_.append(bytes);
    }
  }

  Status Close() override {
    Flush();
    if (error_) return *error_;
    return {};
  }

 private:
  void Flush() {
    WriteOut(block_);
    block_.clear();
  }

  void WriteOut(std::string_view bytes) {
    while (!bytes.empty() && !error_) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0) {
        if (errno == EINTR) continue;
        error_ = FileError(name_, "cannot be written", errno);
        return;
      }
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }

  int fd_;
  std::string name_;
  std::string block_;
  std::optional<Error> error_;
};

class DeflateSink final : public ByteSink {
 public:
  DeflateSink(int fd, std::string name) : out_(fd, std::move(name)), level_buffer_(ISAL_DEF_LVL1_DEFAULT) {
    isal_deflate_init(&stream_);
    stream_.level = 1;
    stream_.level_buf = level_buffer_.data();
    stream_.level_buf_size = static_cast<uint32_t>(level_buffer_.size());
    stream_.gzip_flag = IGZIP_GZIP;
    compressed_.resize(kBlockBytes);
    block_.reserve(kBlockBytes);
  }

  void Write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const size_t taken = std::min(bytes.size(), kBlockBytes - block_.size());
      block_.append(bytes.substr(0, taken));
      bytes.remove_prefix(taken);
      if (block_.size() == kBlockBytes) Deflate(false);
    }
  }

  Status Close() override {
    Deflate(true);
    return out_.Close();
  }

 private:
  void Deflate(bool last) {
    stream_.next_in = reinterpret_cast<uint8_t*>(block_.data());
    stream_.avail_in = static_cast<uint32_t>(block_.size());
    stream_.end_of_stream = last ? 1 : 0;
    do {
      stream_.next_out = reinterpret_cast<uint8_t*>(compressed_.data());
      stream_.avail_out = static_cast<uint32_t>(compressed_.size());
      isal_deflate(&stream_);
      out_.Write(std::string_view(compressed_).substr(0, compressed_.size() - stream_.avail_out));
    } while (stream_.avail_out == 0);
    block_.clear();
  }

  FdSink out_;
  isal_zstream stream_ = {};
  std::vector<uint8_t> level_buffer_;
  std::string block_;
  std::string compressed_;
};

}  // namespace

OutputFile::OutputFile(std::string path, std::string temporary_path, bool has_name, UniqueFd fd)
    : path_(std::move(path)), temporary_path_(std::move(temporary_path)), has_name_(has_name), fd_(std::move(fd)) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_path_(std::move(other.temporary_path_)),
      has_name_(std::exchange(other.has_name_, false)),
      fd_(std::move(other.fd_)) {}

OutputFile::~OutputFile() {
  if (has_name_) ::unlink(temporary_path_.c_str());
}

Result<OutputFile> OutputFile::Create(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return Error{.code = ErrorCode::kIo, .message = "is a folder; give the name of a file", .file = path};
  }
  std::string temporary = fmt::format("{}.part-{}", path, ::getpid());
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  UniqueFd nameless(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0644));
  if (nameless.valid()) return OutputFile(path, std::move(temporary), false, std::move(nameless));
  UniqueFd named(::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!named.valid()) return FileError(path, "cannot be created", errno);
  return OutputFile(path, std::move(temporary), true, std::move(named));
}

uint64_t OutputFile::size_bytes() const {
  struct stat status = {};
  return ::fstat(fd_.get(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

Status OutputFile::Commit() {
  if (!has_name_) {
    const std::string link = fmt::format("/proc/self/fd/{}", fd_.get());
    ::unlink(temporary_path_.c_str());
    if (::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, temporary_path_.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return FileError(path_, "cannot be put in place", errno);
    has_name_ = true;
  }
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return FileError(path_, "cannot be put in place", errno);
  }
  has_name_ = false;
  return {};
}

std::unique_ptr<ByteSink> PlainSink(int fd, std::string name) { return std::make_unique<FdSink>(fd, std::move(name)); }

std::unique_ptr<ByteSink> GzipSink(int fd, std::string name) {
  return std::make_unique<DeflateSink>(fd, std::move(name));
}

}  // namespace lockstep::timeline
