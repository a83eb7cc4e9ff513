#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "model/evidence/process_state.h"

namespace lockstep::inspect {

/// One line of /proc/PID/net/tcp or tcp6.
struct TableSocket {
  uint64_t inode = 0;
  evidence::SocketState socket;
};
/// Of the text of such a table; lines of another form are passed over.
std::vector<TableSocket> ParseSocketTable(std::string_view text);

/// Inodes of the sockets that a process has open, ascending.
std::vector<uint64_t> ReadSocketInodes(pid_t pid);

/// TCP sockets that the process has open, by the tables of its own network namespace; at most 4,096.
std::vector<evidence::SocketState> ReadTcpSockets(pid_t pid);

/// Ports that the process listens on, by the same tables.
std::vector<uint16_t> ReadListeningPorts(pid_t pid);

}  // namespace lockstep::inspect
