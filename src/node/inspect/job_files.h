#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::inspect {

/// What PyTorch's NCCL flight recorder wrote when a byte came through its pipe.
struct PipeDump {
  std::string record = {};
  std::string problem;  ///< Why there is none although there is a pipe; "" = there is no pipe, or a record.
};
/// Writes a byte into the pipe that TORCH_NCCL_DEBUG_INFO_PIPE_FILE names in the process's environment, and waits for
/// its new dump. Needs the rank that the file names end with. Blocks until the deadline at most.
PipeDump AskPipe(pid_t pid, int32_t rank, int64_t deadline_monotonic_ns);

/// End of a regular file that belongs to `uid`, at most `limit_bytes`, from a whole line on; "" = it may not be had.
std::string ReadTail(int fd, uint32_t uid, size_t limit_bytes);
struct LogTail {
  std::string path;
  std::string text;
};
/// End of what the process's standard error (else output) is written to, where that is a regular file of its own user.
/// Needs no more rights than the user's own.
LogTail ReadLogTail(pid_t pid, size_t limit_bytes);

}  // namespace lockstep::inspect
