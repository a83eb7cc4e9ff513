#include "node/control/client/credentials.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/small_file.h"
#include "base/unique_fd.h"

namespace lockstep::control {
namespace {

constexpr size_t kTokenBytes = 4096;

}  // namespace

Result<std::string> ReadToken(const std::string& path) {
  const auto failed = [&](ErrorCode code, const std::string& why) {
    return Error{code, fmt::format("the token file {} {}", path, why)};
  };
  // O_NONBLOCK: a named pipe must not hold us.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) {
    const int why = errno;
    const ErrorCode code = why == ENOENT || why == ENOTDIR ? ErrorCode::kNotFound
                           : why == EACCES                 ? ErrorCode::kPermissionDenied
                                                           : ErrorCode::kIo;
    return failed(code, fmt::format("cannot be opened: {}", std::strerror(why)));
  }
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return failed(ErrorCode::kIo, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return failed(ErrorCode::kPermissionDenied, "is not a regular file");
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return failed(ErrorCode::kPermissionDenied, fmt::format("belongs to uid {}, not to you", info.st_uid));
  }
  if ((info.st_mode & 077U) != 0) {
    return failed(ErrorCode::kPermissionDenied,
                  fmt::format("may be read by others (mode {:04o}); run 'chmod 600' on it", info.st_mode & 07777U));
  }
  const std::optional<std::string> text = ReadSome(fd.get(), kTokenBytes + 1);
  if (!text) return failed(ErrorCode::kIo, fmt::format("cannot be read: {}", std::strerror(errno)));
  if (text->size() > kTokenBytes) {
    return failed(ErrorCode::kCorruptData, "is longer than 4 KiB; it holds one line, the token");
  }
  std::string token = *text;
  token.erase(token.find_last_not_of(" \t\r\n") + 1);
  // What may stand in a header, and nothing that ends it.
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f'; };
  if (token.empty() || !std::all_of(token.begin(), token.end(), is_plain)) {
    return failed(ErrorCode::kCorruptData, "does not hold one line of printable characters without blanks");
  }
  return token;
}

bool IsLoopback(const std::string& address) {
  if (address == "localhost") return true;
  in_addr v4 = {};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24U) == 127;
  in6_addr v6 = {};
  return ::inet_pton(AF_INET6, address.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace lockstep::control
