#include "inside/log_write/rotating_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace lockstep::logs {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kMode = 0644;
constexpr int kMostNames = 1'000;
constexpr const char* kNextEnding = ".new";  // Of no log: who reads the folder passes over it.
constexpr std::array<const char*, 4> kCompressed = {"", ".gz", ".zst", ".xz"};

Error SystemError(const std::string& path, int number, const char* what) {
  return {
      .code = number == EACCES || number == EPERM || number == EROFS ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
      .message = fmt::format("{}: {}", what, std::generic_category().message(number)),
      .file = path};
}

UniqueFd OpenNew(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOCTTY, kMode));
}

/// "a/rank3.log" with a number: "a/rank3-2.log".
std::string Numbered(const std::string& path, int number) {
  const fs::path whole(path);
  return (whole.parent_path() / fmt::format("{}-{}{}", whole.stem().string(), number, whole.extension().string()))
      .string();
}

}  // namespace

RotatingFile::RotatingFile(RotatingFileOptions options, UniqueFd fd)
    : options_(std::move(options)), fd_(std::move(fd)) {
  if (options_.compresses && options_.file_count > 1) {
    compressor_ = std::make_unique<RotatedCompressor>(options_.path, options_.file_count - 1);
  }
}

Result<RotatingFile> RotatingFile::Create(RotatingFileOptions options) {
  std::error_code failed;
  const fs::path folder = fs::path(options.path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, failed);
  if (failed) return SystemError(folder.string(), failed.value(), "cannot be made");
  const std::string wanted = options.path;
  for (int number = 2; number < kMostNames; ++number) {
    UniqueFd fd = OpenNew(options.path);
    if (fd.valid()) return RotatingFile(std::move(options), std::move(fd));
    if (errno != EEXIST) return SystemError(wanted, errno, "cannot be written");
    options.path = Numbered(wanted, number);
  }
  return SystemError(wanted, EEXIST, "cannot be written");
}

Status RotatingFile::Write(std::string_view lines, size_t* written_bytes) {
  size_t written = 0;
  Status status;
  if (compressor_) compressor_->Look();
  while (written < lines.size()) {
    std::string_view part = lines.substr(written);
    const uint64_t room = size_bytes_ < options_.max_bytes ? options_.max_bytes - size_bytes_ : 0;
    if (part.size() > room) {
      // As many whole lines as fit, and the first of a new file in any case.
      const size_t end = room == 0 ? std::string_view::npos : part.rfind('\n', room - 1);
      if (end != std::string_view::npos) {
        part = part.substr(0, end + 1);
      } else if (size_bytes_ > 0) {
        status = Rotate();
        if (!status) break;
        continue;
      } else {
        part = part.substr(0, part.find('\n') + 1);
      }
    }
    status = WriteWhole(part, &written);
    if (!status) break;
  }
  if (written_bytes != nullptr) *written_bytes = written;
  return status;
}

Status RotatingFile::WriteWhole(std::string_view lines, size_t* whole) {
  if (has_cut_line_) {
    if (::write(fd_.get(), "\n", 1) != 1) return SystemError(options_.path, errno, "cannot be written");
    ++size_bytes_;
    has_cut_line_ = false;
  }
  size_t written = 0;
  while (written < lines.size()) {
    const ssize_t count = ::write(fd_.get(), lines.data() + written, lines.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int number = count == 0 ? ENOSPC : errno;
      // Half a line is taken back.
      const size_t kept = written == 0 ? 0 : lines.rfind('\n', written - 1) + 1;
      has_cut_line_ = written > kept && ::ftruncate(fd_.get(), static_cast<off_t>(size_bytes_ + kept)) != 0;
      size_bytes_ += has_cut_line_ ? written : kept;
      *whole += kept;
      return SystemError(options_.path, number, "cannot be written");
    }
    written += static_cast<size_t>(count);
  }
  size_bytes_ += lines.size();
  *whole += lines.size();
  return {};
}

// The new file is made before an old one is renamed: if it cannot be made, all old files are kept, however often this
// is tried.
Status RotatingFile::Rotate() {
  const std::string next = options_.path + kNextEnding;
  ::unlink(next.c_str());  // Of a process that was killed right here.
  UniqueFd fd = OpenNew(next);
  if (!fd.valid()) return SystemError(options_.path, errno, "cannot be written anew when it is full");
  Status moved = MakeWay();
  if (moved && std::rename(next.c_str(), options_.path.c_str()) != 0) {
    moved = SystemError(options_.path, errno, "cannot be written anew when it is full");
  }
  if (!moved) {
    ::unlink(next.c_str());
    return moved;
  }
  fd_ = std::move(fd);
  size_bytes_ = 0;
  has_cut_line_ = false;
  if (compressor_) compressor_->OnRotated();
  return {};
}

Status RotatingFile::MakeWay() {
  // The file was removed by another program: a new one is begun, and the older ones stay as they are.
  if (::access(options_.path.c_str(), F_OK) != 0 && errno == ENOENT) return {};
  const auto aged = [this](int age) { return fmt::format("{}.{}", options_.path, age); };
  const int oldest = options_.file_count - 1;
  for (const char* ending : kCompressed) {
    if (oldest > 0) ::unlink((aged(oldest) + ending).c_str());
  }
  for (int age = oldest - 1; age >= 1; --age) {
    for (const char* ending : kCompressed) {
      ::rename((aged(age) + ending).c_str(), (aged(age + 1) + ending).c_str());  // Most are not there.
    }
  }
  if (oldest > 0 && std::rename(options_.path.c_str(), aged(1).c_str()) != 0) {
    return SystemError(options_.path, errno, "cannot be renamed when it is full");
  }
  return {};
}

}  // namespace lockstep::logs
