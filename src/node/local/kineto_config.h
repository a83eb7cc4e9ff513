#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lockstep::local {

constexpr const char* kSystemBaseConfig = "/etc/libkineto.conf";  ///< Read where KINETO_CONFIG is not set.
constexpr int64_t kDefaultPollSeconds = 5;                        ///< Kineto's own.
/// "<folder>/dynoconfigclient<uuid>" has to fit into a socket address; Kineto does not check.
constexpr size_t kMaxSocketFolderBytes = 54;

/// A base configuration of Kineto as far as it matters to a capture. PyTorch 2.3 - 2.9 can crash at `import torch` when
/// a daemon answers and this file is missing or empty; one line of comment is enough.
struct BaseConfig {
  std::string path;
  bool readable = false;
  bool empty = true;
  std::optional<int64_t> poll_seconds;  ///< ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS; unset: kDefaultPollSeconds.
};

/// Never fails: a file that cannot be read says so. At most 64 KiB of it are looked at.
BaseConfig ReadBaseConfig(const std::string& path);

/// What `lockstep run` adds to a job's environment, and what its user should know of it.
struct KinetoEnvironment {
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::string> warnings;
};

/// KINETO_USE_DAEMON=1, and KINETO_CONFIG where neither the job's own base configuration nor the system's is one:
/// a file in `folder` that makes processes poll each `poll_seconds`. `socket_folder`: KINETO_IPC_SOCKET_DIR; empty:
/// left as it is. Errors: kIo, kPermissionDenied when that file cannot be written.
Result<KinetoEnvironment> MakeKinetoEnvironment(const std::string& folder, int64_t poll_seconds,
                                                const std::string& socket_folder);

/// Makes a folder for Kineto's sockets where there is none: every user's processes make theirs in it (mode 1777).
/// Errors: kInvalidArgument when Kineto cannot use it (too long, not in its plain form, reached through a link: a
/// daemon's answer from there would end the process); kIo, kPermissionDenied.
Status PrepareSocketFolder(const std::string& path);

/// What is wrong with the form of a socket folder's path; empty: nothing.
std::string SocketFolderFault(const std::string& path);

}  // namespace lockstep::local
