#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "node/control/api/process.h"

namespace lockstep::agent {

/// Whether the process that was seen with this pid and start time has ended; nullopt when that cannot be told (pid 0).
/// A zombie has ended.
std::optional<bool> HasEnded(const control::Process& process);

/// The pid's ancestors, nearest first, up to pid 1; at most 64. Empty when it is gone.
std::vector<int32_t> AncestorsOf(int32_t pid);

/// Whether the process resolves paths differently: another mount namespace, or another root. False when that cannot be
/// read.
bool HasOtherFileView(int32_t pid);

/// A variable of the process's environment as it was started with; nullopt when unset, empty or not readable. At most
/// 4 MiB of environment are read.
std::optional<std::string> EnvironmentOf(int32_t pid, const std::string& name);

/// Major and minor of "2.13.0+cpu"; nullopt when it is not of that form.
std::optional<std::pair<int32_t, int32_t>> TorchRelease(const std::string& torch_version);

}  // namespace lockstep::agent
