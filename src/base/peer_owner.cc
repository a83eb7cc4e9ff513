#include "base/peer_owner.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/split.h"
#include "base/text_scan.h"
#include "base/unique_fd.h"

namespace lockstep {
namespace {

constexpr size_t kTableBytes = size_t{4} << 20;  // Of /proc/net/tcp: some 27,000 sockets.

/// An address as 16 bytes, IPv4 in IPv6's clothes, and a port in network order.
struct End {
  in6_addr address = {};
  in_port_t port = 0;

  bool operator==(const End& other) const {
    return port == other.port && std::memcmp(&address, &other.address, sizeof(address)) == 0;
  }
};

End EndOf(const uint32_t words[4], bool is_v6, in_port_t port) {
  End end = {.port = port};
  if (is_v6) {
    std::memcpy(&end.address, words, sizeof(end.address));
  } else {
    end.address.s6_addr[10] = end.address.s6_addr[11] = 0xff;
    std::memcpy(end.address.s6_addr + 12, words, 4);
  }
  return end;
}

End EndOf(const sockaddr_storage& storage) {
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    End end = {.port = v6.sin6_port};
    end.address = v6.sin6_addr;
    return end;
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
  const uint32_t words[4] = {v4.sin_addr.s_addr, 0, 0, 0};
  return EndOf(words, false, v4.sin_port);
}

struct DiagRequest {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

// Asks for the one socket whose own end is `client`. The kernel answers with a listener when there is no such
// connection, so what comes back is compared.
DiagRequest MakeRequest(const End& client, const End& server) {
  DiagRequest request = {};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = 1U << TCP_ESTABLISHED;
  request.body.id.idiag_cookie[0] = request.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  request.body.id.idiag_sport = client.port;
  request.body.id.idiag_dport = server.port;
  const bool is_v4 = IN6_IS_ADDR_V4MAPPED(&client.address);
  request.body.sdiag_family = is_v4 ? AF_INET : AF_INET6;
  const size_t skip = is_v4 ? 12 : 0;
  std::memcpy(request.body.id.idiag_src, client.address.s6_addr + skip, 16 - skip);
  std::memcpy(request.body.id.idiag_dst, server.address.s6_addr + skip, 16 - skip);
  return request;
}

/// "0100007F:1F90": words of this machine's byte order, in hexadecimal; the port as a number.
bool ReadEnd(std::string_view text, End* end) {
  const size_t colon = text.find(':');
  if (colon != 8 && colon != 32) return false;
  uint32_t words[4] = {};
  uint16_t port = 0;
  for (size_t i = 0; i < colon / 8; ++i) {
    if (!ReadNumber(text.substr(i * 8, 8), &words[i], 16)) return false;
  }
  if (!ReadNumber(text.substr(colon + 1), &port, 16)) return false;
  *end = EndOf(words, colon == 32, htons(port));
  return true;
}

}  // namespace

Result<std::optional<uint32_t>> OwnerBySockDiag(const sockaddr_storage& client, const sockaddr_storage& server) {
  const Error no_answer = {.code = ErrorCode::kUnsupported, .message = "the kernel's socket tables cannot be asked"};
  const End client_end = EndOf(client);
  const End server_end = EndOf(server);
  const UniqueFd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink.valid()) return no_answer;
  const timeval patience = {.tv_sec = 1, .tv_usec = 0};  // The kernel answers at once; never hang on it.
  ::setsockopt(netlink.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const DiagRequest request = MakeRequest(client_end, server_end);
  sockaddr_nl kernel = {};
  kernel.nl_family = AF_NETLINK;
  if (::sendto(netlink.get(), &request, sizeof(request), 0, reinterpret_cast<const sockaddr*>(&kernel),
               sizeof(kernel)) != static_cast<ssize_t>(sizeof(request))) {
    return no_answer;
  }
  alignas(nlmsghdr) char answer[4096];
  sockaddr_nl sender = {};
  socklen_t sender_bytes = sizeof(sender);
  const ssize_t count =
      ::recvfrom(netlink.get(), answer, sizeof(answer), 0, reinterpret_cast<sockaddr*>(&sender), &sender_bytes);
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer);
  if (count < static_cast<ssize_t>(sizeof(nlmsghdr)) || sender.nl_pid != 0 || header->nlmsg_len > count)
    return no_answer;
  if (header->nlmsg_type == NLMSG_ERROR && header->nlmsg_len >= NLMSG_LENGTH(sizeof(nlmsgerr))) {
    if (reinterpret_cast<const nlmsgerr*>(NLMSG_DATA(header))->error == -ENOENT) return std::optional<uint32_t>();
    return no_answer;  // This kernel has no such table.
  }
  if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY || header->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg)))
    return no_answer;
  const auto* found = reinterpret_cast<const inet_diag_msg*>(NLMSG_DATA(header));
  const bool is_v6 = found->idiag_family == AF_INET6;
  const bool is_it = EndOf(found->id.idiag_src, is_v6, found->id.idiag_sport) == client_end &&
                     EndOf(found->id.idiag_dst, is_v6, found->id.idiag_dport) == server_end;
  // A socket that no process holds any more, or that waits for its end, has user 0 and inode 0 there.
  if (!is_it || found->idiag_state != TCP_ESTABLISHED || found->idiag_inode == 0) return std::optional<uint32_t>();
  return std::optional<uint32_t>(found->idiag_uid);
}

std::optional<uint32_t> OwnerByProcTable(std::string_view table, const sockaddr_storage& client,
                                         const sockaddr_storage& server) {
  const End client_end = EndOf(client);
  const End server_end = EndOf(server);
  LineScanner lines(table);
  for (std::string_view line; lines.Next(&line);) {
    // Place, own end, other end, state, queues, timer, retransmissions, user, timeout, inode.
    const std::vector<std::string_view> words = SplitAt(line, " ");
    End own;
    End other;
    if (words.size() < 3 || !ReadEnd(words[1], &own) || !ReadEnd(words[2], &other)) continue;
    if (!(own == client_end) || !(other == server_end)) continue;
    if (words.size() < 10 || WholeNumber<int>(words[3], 16) != TCP_ESTABLISHED) return std::nullopt;
    return WholeNumber<uint64_t>(words[9]).value_or(0) == 0 ? std::nullopt : WholeNumber<uint32_t>(words[7]);
  }
  return std::nullopt;
}

std::optional<uint32_t> OwnerOfPeer(int fd) {
  sockaddr_storage client = {};
  sockaddr_storage server = {};
  socklen_t client_bytes = sizeof(client);
  socklen_t server_bytes = sizeof(server);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&client), &client_bytes) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&server), &server_bytes) != 0) {
    return std::nullopt;
  }
  if (client.ss_family != AF_INET && client.ss_family != AF_INET6) return std::nullopt;
  if (const auto owner = OwnerBySockDiag(client, server)) return *owner;
  for (const char* path : {"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"}) {
    std::ifstream file(path);
    std::string table(kTableBytes, '\0');
    file.read(table.data(), static_cast<std::streamsize>(table.size()));
    table.resize(static_cast<size_t>(file.gcount()));
    if (const auto owner = OwnerByProcTable(table, client, server)) return owner;
  }
  return std::nullopt;
}

}  // namespace lockstep
