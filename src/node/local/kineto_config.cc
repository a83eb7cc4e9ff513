#include "node/local/kineto_config.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/output_file.h"
#include "base/system_error.h"
#include "base/text_scan.h"
#include "base/trim.h"
#include "base/unique_fd.h"

namespace lockstep::local {
namespace {

constexpr std::string_view kPollKey = "ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS";
constexpr size_t kMaxConfigBytes = size_t{64} << 10;
constexpr std::string_view kBlanks = " \t\r";

// As Kineto reads it: '#' begins a comment anywhere, the last line wins.
std::optional<int64_t> PollSecondsOf(std::string_view text) {
  std::optional<int64_t> seconds;
  LineScanner lines(text);
  for (std::string_view line; lines.Next(&line);) {
    line = line.substr(0, line.find('#'));
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || Trimmed(line.substr(0, equals), kBlanks) != kPollKey) continue;
    const auto value = WholeNumber(Trimmed(line.substr(equals + 1), kBlanks));
    if (value && *value > 0) seconds = *value;
  }
  return seconds;
}

std::string ConfigText(int64_t poll_seconds) {
  return fmt::format(
      "# Base configuration of Kineto, written by 'lockstep run'. That it is not empty keeps PyTorch 2.3 to 2.9 from "
      "a\n"
      "# race at its start; the line below makes processes ask the node's daemon this often instead of each 5 s.\n"
      "{}={}\n",
      kPollKey, poll_seconds);
}

}  // namespace

BaseConfig ReadBaseConfig(const std::string& path) {
  BaseConfig config;
  config.path = path;
  // Opened without blocking: a user's KINETO_CONFIG may name a FIFO.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return config;
  std::string text(kMaxConfigBytes, '\0');
  const ssize_t got = ::pread(fd.get(), text.data(), text.size(), 0);
  if (got < 0) return config;
  text.resize(static_cast<size_t>(got));
  config.readable = true;
  config.empty = text.empty();
  config.poll_seconds = PollSecondsOf(text);
  return config;
}

Result<KinetoEnvironment> MakeKinetoEnvironment(const std::string& folder, int64_t poll_seconds,
                                                const std::string& socket_folder) {
  KinetoEnvironment environment;
  environment.variables.emplace_back("KINETO_USE_DAEMON", "1");  // Its presence counts in C++, its value in Python.
  if (!socket_folder.empty()) environment.variables.emplace_back("KINETO_IPC_SOCKET_DIR", socket_folder);

  const char* own = std::getenv("KINETO_CONFIG");
  const bool has_own = own != nullptr && *own != '\0';
  const BaseConfig config = ReadBaseConfig(has_own ? own : kSystemBaseConfig);
  if (config.readable && !config.empty) {
    if (!config.poll_seconds) {
      environment.warnings.push_back(
          fmt::format("{} is kept as Kineto's base configuration; without the line {}={} in it processes ask for "
                      "captures each {} s",
                      config.path, kPollKey, poll_seconds, kDefaultPollSeconds));
    }
    return environment;
  }
  if (has_own) {
    environment.warnings.push_back(fmt::format("KINETO_CONFIG={} {}: another file takes its place", own,
                                               config.readable ? "is empty" : "cannot be read"));
  }
  const std::string path = fmt::format("{}/kineto-poll-{}s.conf", folder, poll_seconds);
  RETURN_IF_ERROR(WriteOutputFile(path, ConfigText(poll_seconds)));
  environment.variables.emplace_back("KINETO_CONFIG", path);
  return environment;
}

std::string SocketFolderFault(const std::string& path) {
  if (path.empty() || path[0] != '/') return "is not an absolute path";
  if (path.size() > kMaxSocketFolderBytes) {
    return fmt::format("has {} characters, and with more than {} Kineto writes past the end of an address", path.size(),
                       kMaxSocketFolderBytes);
  }
  if (path.size() > 1 && (path.back() == '/' || std::filesystem::path(path).lexically_normal() != path)) {
    return "is not in its plain form; processes and daemon must use the very same name";
  }
  char real[PATH_MAX];
  if (::realpath(path.c_str(), real) != nullptr && path != real) {
    return fmt::format("is another name of {}; processes and daemon must use the very same one", real);
  }
  return {};
}

Status PrepareSocketFolder(const std::string& path) {
  const auto check = [&path]() -> Status {
    const std::string fault = SocketFolderFault(path);
    if (!fault.empty()) return Error{ErrorCode::kInvalidArgument, fmt::format("--socket-dir {}: {}", path, fault)};
    return {};
  };
  RETURN_IF_ERROR(check());
  // Only the last folder is made, and only then its mode is set: an existing folder is the user's choice.
  if (::mkdir(path.c_str(), 0777) == 0) {
    if (::chmod(path.c_str(), 01777) != 0) return SystemError(path, "open the folder to every user", errno);
  } else if (errno != EEXIST) {
    return SystemError(path, "make the folder for Kineto's sockets", errno);
  }
  RETURN_IF_ERROR(check());  // Now that it is there, links on the way to it are seen.
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return SystemError(path, "look at the folder for Kineto's sockets", errno);
  if (!S_ISDIR(info.st_mode))
    return Error{ErrorCode::kInvalidArgument, fmt::format("--socket-dir {}: is not a folder", path)};
  if (::access(path.c_str(), W_OK | X_OK) != 0) return SystemError(path, "make sockets in the folder", errno);
  return {};
}

}  // namespace lockstep::local
