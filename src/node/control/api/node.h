#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::control {

/// GET /api/v1/status.
struct NodeStatus {
  std::string host;
  std::string version;
  int32_t daemon_pid = 0;
  uint32_t daemon_uid = 0;
  int64_t started_unix_ns = 0;
  int64_t now_unix_ns = 0;  ///< The node's wall clock while answering: the caller compares it with its own.
  std::vector<std::string> kineto_sockets;  ///< "abstract:dynolog", or paths; those that are bound.
  std::string base_config;  ///< Path of a non-empty base configuration that the node's processes get; empty: none.
  uint64_t process_count = 0;
  uint64_t running_capture_count = 0;
  std::optional<int32_t> ptrace_scope;  ///< kernel.yama.ptrace_scope; nullopt: a kernel without Yama, which allows it.
  bool allows_unsafe_captures = false;  ///< By its configuration, whatever a capture asks for.
  bool may_trace_all = false;           ///< The daemon has CAP_SYS_PTRACE: the scope does not bind it.
  std::vector<std::string> problems;    ///< For a reader: a socket that was taken, a folder that cannot be written.
};

}  // namespace lockstep::control
