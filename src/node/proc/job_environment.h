#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "node/proc/process_details.h"

namespace lockstep::proc {

/// Sets rank, sizes and job from a process's environment (NAME=VALUE, zero bytes between), and keeps nothing else of
/// it. The innermost launcher gives the rank (launchers::FindRank, kOfAnyProcess), the outermost scheduler the job.
/// docs/formats/kineto-ipc.md#who-a-process-is.
void ReadJobEnvironment(std::string_view environment, ProcessDetails* details);

/// "NAME=VALUE" of what steers communication (NCCL_, RCCL_, GLOO_, UCX_, TORCH_, PYTORCH_, OMP_NUM_THREADS, ...),
/// sorted, at most 128 of at most 256 bytes; names that look like a secret's are left out.
std::vector<std::string> ReadSettings(std::string_view environment);

/// The value of a variable of such an environment; empty where it is not set.
std::string_view EnvironmentValue(std::string_view environment, std::string_view name);

/// "pod0a1b..." of /proc/PID/cgroup's text as a pod's uid, or empty.
std::string_view FindPodUid(std::string_view cgroup_text);

/// Arguments (zero bytes between) as one line of at most 1 KiB: what looks like a secret is "***", what a terminal or
/// JSON could not bear is '?'.
std::string CommandText(std::string_view arguments);

/// Whether a command line (zero bytes between its arguments) starts ranks and is none: torchrun, accelerate, deepspeed,
/// by name or by "-m".
bool IsLauncherCommand(std::string_view arguments);

}  // namespace lockstep::proc
