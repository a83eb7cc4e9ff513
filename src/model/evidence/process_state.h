#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::evidence {

/// A TCP connection of a process.
struct SocketState {
  std::string local;  ///< "10.0.0.1:4711".
  std::string remote;
  std::string state;  ///< "ESTABLISHED", "CLOSE_WAIT", ...
  uint64_t send_queue_bytes = 0;
  uint64_t receive_queue_bytes = 0;
};

/// A device or port as its driver's files tell, where there is one: "gpu", "infiniband", "ethernet".
struct DeviceState {
  std::string kind;
  std::string name;
  std::string state;                                       ///< "ok", "down", "error", "busy", in the source's words.
  std::vector<std::pair<std::string, std::string>> facts;  ///< Counter or property, and its value with unit.
};

/// What /proc says of a process, read twice a little apart.
struct ProcessState {
  char state = '?';                         ///< R, S, D, T (stopped), t (traced), Z; '?' = unknown; 'X' = gone.
  int64_t window_ns = 0;                    ///< Between the two readings.
  std::optional<int64_t> cpu_ns;            ///< Processor time used in between, all threads.
  std::optional<int64_t> context_switches;  ///< Voluntary and involuntary in between, all threads.
  std::optional<uint64_t> read_bytes;       ///< Read in between (/proc/PID/io).
  std::optional<uint64_t> write_bytes;
  std::optional<uint64_t> resident_bytes;
  std::optional<uint64_t> memory_limit_bytes;  ///< Of its cgroup.
  std::optional<int64_t> oom_kill_count;       ///< Of its cgroup.
  std::vector<SocketState> sockets;
  std::vector<DeviceState> devices;
};

}  // namespace lockstep::evidence
