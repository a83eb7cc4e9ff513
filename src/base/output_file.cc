#include "base/output_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/fd_buffer.h"
#include "base/system_error.h"
#include "base/unique_fd.h"

namespace lockstep {
namespace {

/// The file that `path` names in the end.
std::string FollowLinks(const std::string& path) {
  std::error_code code;
  const std::filesystem::path real = std::filesystem::canonical(path, code);
  return code ? path : real.string();
}

/// A file that is removed unless it was given its name.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  bool Rename(const std::string& to) {
    if (::rename(path_.c_str(), to.c_str()) != 0) return false;
    path_.clear();
    return true;
  }

 private:
  std::string path_;
};

}  // namespace

Status CheckOutputFile(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISREG(info.st_mode)) return {};
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = S_ISDIR(info.st_mode) ? "is a folder; name a file in it"
                                                  : "is not a regular file, and only such are overwritten",
                 .file = path};
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code code;
  if (folder.empty() || std::filesystem::is_directory(folder, code)) return {};
  return Error{.code = ErrorCode::kNotFound, .message = "its folder does not exist; make it first", .file = path};
}

Status WriteOutputFile(const std::string& path, const std::function<void(std::ostream&)>& write) {
  RETURN_IF_ERROR(CheckOutputFile(path));
  const std::string target = FollowLinks(path);
  std::string pattern = target + ".XXXXXX";
  const UniqueFd fd(::mkstemp(pattern.data()));
  if (!fd.valid()) return SystemError(path, "make a file beside it", errno);
  Temporary temporary(pattern);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd.get(), 0666 & ~mask);
  int error = 0;
  bool given_up = false;
  {
    FdBuffer buffer(fd.get());
    std::ostream out(&buffer);
    write(out);
    given_up = out.fail();
    out.flush();
    error = buffer.error();
  }
  if (error != 0) return SystemError(path, "write", error);
  if (given_up) return Error{.code = ErrorCode::kCancelled, .message = "was left as it was", .file = path};
  if (!temporary.Rename(target)) return SystemError(path, "give the new file its name", errno);
  return {};
}

Status WriteOutputFile(const std::string& path, std::string_view bytes) {
  return WriteOutputFile(path, [bytes](std::ostream& out) { out << bytes; });
}

}  // namespace lockstep
