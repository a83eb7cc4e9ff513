#include "node/inspect/tcp_sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/split.h"
#include "base/text_scan.h"
#include "node/inspect/proc_files.h"

namespace lockstep::inspect {
namespace {

constexpr size_t kMaxSocketTableBytes = size_t{16} << 20;
constexpr size_t kMaxOpenFiles = 65536;
constexpr size_t kMaxSockets = 4096;

constexpr std::array<const char*, 13> kStates = {"UNKNOWN",   "ESTABLISHED", "SYN_SENT",    "SYN_RECV",   "FIN_WAIT1",
                                                 "FIN_WAIT2", "TIME_WAIT",   "CLOSED",      "CLOSE_WAIT", "LAST_ACK",
                                                 "LISTEN",    "CLOSING",     "NEW_SYN_RECV"};

/// "0100007F:1F90" -> "127.0.0.1:8080": 32-bit words in the machine's order, the port as a number.
bool ReadEnd(std::string_view text, std::string* end, uint16_t* port) {
  const size_t colon = text.find(':');
  if (colon != 8 && colon != 32) return false;
  if (!ReadNumber(text.substr(colon + 1), port, 16)) return false;
  std::array<uint32_t, 4> words = {};
  for (size_t i = 0; i < colon / 8; ++i) {
    if (!ReadNumber(text.substr(i * 8, 8), &words[i], 16)) return false;
  }
  std::array<char, INET6_ADDRSTRLEN> shown = {};
  in6_addr address = {};
  std::memcpy(&address, words.data(), sizeof(address));
  if (colon == 8) {
    ::inet_ntop(AF_INET, words.data(), shown.data(), shown.size());
    *end = fmt::format("{}:{}", shown.data(), *port);
  } else if (IN6_IS_ADDR_V4MAPPED(&address)) {
    ::inet_ntop(AF_INET, &words[3], shown.data(), shown.size());
    *end = fmt::format("{}:{}", shown.data(), *port);
  } else {
    ::inet_ntop(AF_INET6, words.data(), shown.data(), shown.size());
    *end = fmt::format("[{}]:{}", shown.data(), *port);
  }
  return true;
}

std::vector<TableSocket> ReadTables(pid_t pid) {
  std::vector<TableSocket> found = ParseSocketTable(ReadProcFile(pid, "net/tcp", kMaxSocketTableBytes).value_or(""));
  for (TableSocket& one : ParseSocketTable(ReadProcFile(pid, "net/tcp6", kMaxSocketTableBytes).value_or("")))
    found.push_back(std::move(one));
  const std::vector<uint64_t> inodes = ReadSocketInodes(pid);
  std::erase_if(found, [&](const TableSocket& one) {
    return one.inode == 0 || !std::binary_search(inodes.begin(), inodes.end(), one.inode);
  });
  return found;
}

}  // namespace

std::vector<TableSocket> ParseSocketTable(std::string_view text) {
  std::vector<TableSocket> sockets;
  LineScanner lines(text);
  for (std::string_view line; lines.Next(&line);) {
    // sl, local, remote, state, queues, timer, retransmits, uid, timeout, inode
    const std::vector<std::string_view> words = SplitAt(line, " ");
    if (words.size() < 10) continue;
    TableSocket found;
    uint16_t port = 0;
    size_t state = 0;
    const size_t colon = words[4].find(':');
    if (colon == std::string_view::npos || !ReadEnd(words[1], &found.socket.local, &port) ||
        !ReadEnd(words[2], &found.socket.remote, &port) || !ReadNumber(words[3], &state, 16) ||
        !ReadNumber(words[4].substr(0, colon), &found.socket.send_queue_bytes, 16) ||
        !ReadNumber(words[4].substr(colon + 1), &found.socket.receive_queue_bytes, 16))
      continue;
    const auto inode = LeadingNumber(words[9]);
    if (!inode || *inode < 0) continue;
    found.inode = static_cast<uint64_t>(*inode);
    found.socket.state = kStates[state < kStates.size() ? state : 0];
    sockets.push_back(std::move(found));
  }
  return sockets;
}

std::vector<uint64_t> ReadSocketInodes(pid_t pid) {
  std::vector<uint64_t> inodes;
  for (const int64_t fd : ListNumbers(fmt::format("/proc/{}/fd", pid), kMaxOpenFiles)) {
    const std::string target = ReadProcLink(pid, fmt::format("fd/{}", fd));
    if (!target.starts_with("socket:[")) continue;
    if (const auto inode = LeadingNumber(std::string_view(target).substr(8)); inode && *inode > 0)
      inodes.push_back(static_cast<uint64_t>(*inode));
  }
  std::sort(inodes.begin(), inodes.end());
  return inodes;
}

std::vector<evidence::SocketState> ReadTcpSockets(pid_t pid) {
  std::vector<evidence::SocketState> sockets;
  for (TableSocket& one : ReadTables(pid)) {
    if (sockets.size() < kMaxSockets) sockets.push_back(std::move(one.socket));
  }
  return sockets;
}

std::vector<uint16_t> ReadListeningPorts(pid_t pid) {
  std::vector<uint16_t> ports;
  for (const TableSocket& one : ReadTables(pid)) {
    if (one.socket.state != "LISTEN") continue;
    const auto port = LeadingNumber(std::string_view(one.socket.local).substr(one.socket.local.rfind(':') + 1));
    if (port && *port > 0 && *port < 65536) ports.push_back(static_cast<uint16_t>(*port));
  }
  std::sort(ports.begin(), ports.end());
  ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
  return ports;
}

}  // namespace lockstep::inspect
