#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/evidence/stack.h"

namespace lockstep::inspect {

/// A process's own answer to a request: flight record, Python stacks, rank.
struct JobDump {
  std::string source;                                     ///< "helper", "debug_server", "pipe"; "" = none answered.
  std::string format;                                     ///< "pickle", "json"; "" = no record.
  std::string record;                                     ///< As the process made it.
  int64_t record_unix_ns = 0;                             ///< When it began to, or was asked to; 0 = not known.
  std::vector<evidence::ThreadStack> threads;             ///< With Python frames; tid 0 where it is not known.
  std::map<std::string, std::string, std::less<>> facts;  ///< "rank", "world_size", "torch", "backend", "python".
  std::string faulthandler;                               ///< Of the debug server: text, "" = none.
  std::string reason;                                     ///< Why there is no record.
  std::string remedy;
};

/// What the caller knows of the process by then.
struct JobDumpInput {
  std::vector<std::string> thread_names;
  std::string torch_version;  ///< "" = it seems not to have loaded PyTorch.
  int32_t rank = -1;          ///< -1 = unknown.
};

/// Asks the process itself, by what it has: the socket of lockstep.enable_hang_dumps() (python/lockstep/_hang.py),
/// PyTorch's worker server, the pipe of NCCL's flight recorder. Only sockets and pipes that this very process has open
/// and that have these names are touched, as its own user. Blocks until `deadline_monotonic_ns` at most; what came
/// until then stays.
JobDump ReadJobDump(pid_t pid, const JobDumpInput& input, int64_t deadline_monotonic_ns);

/// Reads the helper's answer as far as it goes (docs/formats/hang-socket.md); false: it is none.
bool ParseHelperAnswer(std::string_view answer, JobDump* dump);
/// Threads of its section "stacks".
std::vector<evidence::ThreadStack> ParseHelperStacks(std::string_view text);
/// Path of the helper's socket among the lines of /proc/PID/net/unix: one that the process has open; "" = none.
std::string FindHelperSocket(std::string_view unix_table, const std::vector<uint64_t>& inodes);

}  // namespace lockstep::inspect
