#include "node/control/client/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <isa-l/igzip_lib.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

namespace lockstep::control {
namespace {

Error SystemError(const std::string& path, const char* what) {
  const int number = errno;
  return Error{number == EACCES || number == EPERM ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
               fmt::format("{}: {}", what, std::strerror(number)), path};
}

}  // namespace

// The fastest level: traces are text that repeats, and shrink tenfold all the same.
struct TraceFile::Compressor {
  isal_zstream stream{};
  std::vector<uint8_t> level_buffer;
  std::array<uint8_t, 1 << 17> output{};

  Compressor() {
    isal_deflate_init(&stream);
    stream.level = 1;
    level_buffer.resize(ISAL_DEF_LVL1_DEFAULT);
    stream.level_buf = level_buffer.data();
    stream.level_buf_size = static_cast<uint32_t>(level_buffer.size());
    stream.gzip_flag = IGZIP_GZIP;
    stream.flush = NO_FLUSH;
  }
};

TraceFile::TraceFile() = default;

Result<std::unique_ptr<TraceFile>> TraceFile::Create(const std::string& path, bool compress) {
  std::unique_ptr<TraceFile> file(new TraceFile);
  file->path_ = path + (compress ? ".gz" : "");
  const size_t slash = path.rfind('/');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  const std::string temporary = fmt::format("{}.{}.{}.tmp", path.substr(0, name), path.substr(name), ::getpid());
  file->fd_ = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file->fd_ < 0) return SystemError(temporary, "cannot be made");
  file->temporary_path_ = temporary;
  if (compress) file->compressor_ = std::make_unique<Compressor>();
  return file;
}

TraceFile::~TraceFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

Status TraceFile::WriteOut(const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(fd_, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(path_, "cannot be written");
    bytes += written;
    count -= static_cast<size_t>(written);
    file_bytes_ += static_cast<uint64_t>(written);
  }
  return {};
}

Status TraceFile::Write(std::string_view bytes) {
  scanner_.Feed(bytes);
  if (!compressor_) return WriteOut(bytes.data(), bytes.size());
  isal_zstream& stream = compressor_->stream;
  // isal takes the input as not const, and does not write to it.
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uint32_t>(bytes.size());
  do {
    stream.next_out = compressor_->output.data();
    stream.avail_out = static_cast<uint32_t>(compressor_->output.size());
    if (isal_deflate(&stream) != COMP_OK) return Error{ErrorCode::kIo, "cannot be compressed", path_};
    RETURN_IF_ERROR(WriteOut(reinterpret_cast<const char*>(compressor_->output.data()),
                             compressor_->output.size() - stream.avail_out));
  } while (stream.avail_in > 0 || stream.avail_out == 0);
  return {};
}

Result<TraceFacts> TraceFile::Keep(uint64_t expected_bytes) {
  if (compressor_) {
    compressor_->stream.end_of_stream = 1;
    RETURN_IF_ERROR(Write({}));
  }
  const TraceFacts facts = scanner_.Finish();
  if (facts.bytes != expected_bytes) {
    return Error{ErrorCode::kCorruptData, fmt::format("{} of {} bytes came", facts.bytes, expected_bytes), path_};
  }
  if (!facts.whole) {
    return Error{ErrorCode::kCorruptData, "is not a complete trace: its JSON does not end, or has no list of events",
                 path_};
  }
  const int closed = ::close(fd_);
  fd_ = -1;
  // Network file systems report a full disk here.
  if (closed != 0) return SystemError(path_, "cannot be written");
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) return SystemError(path_, "cannot be named");
  temporary_path_.clear();
  return facts;
}

}  // namespace lockstep::control
