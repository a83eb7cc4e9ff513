#include "base/http/peer.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>

#include "base/peer_owner.h"

namespace lockstep::http {
namespace {

/// An IPv4 address in IPv6's clothes is an IPv4 address.
std::optional<in_addr> MappedV4(const sockaddr_in6& address) {
  if (!IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) return std::nullopt;
  in_addr v4 = {};
  std::memcpy(&v4, address.sin6_addr.s6_addr + 12, sizeof(v4));
  return v4;
}

struct IpEnd {
  std::string text = {};     ///< Without port and brackets.
  std::string network = {};  ///< What is one source.
  uint16_t port = 0;
  bool is_v6 = false;
  bool is_loopback = false;
};

IpEnd ReadV4(in_addr address, uint16_t port) {
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &address, text, sizeof(text));
  return {.text = text, .network = text, .port = port, .is_loopback = (ntohl(address.s_addr) >> 24) == 127};
}

IpEnd ReadIp(const sockaddr_storage& storage) {
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    return ReadV4(v4.sin_addr, ntohs(v4.sin_port));
  }
  if (storage.ss_family != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  if (const auto v4 = MappedV4(v6)) return ReadV4(*v4, ntohs(v6.sin6_port));
  IpEnd end = {.port = ntohs(v6.sin6_port), .is_v6 = true, .is_loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) != 0};
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  end.text = text;
  in6_addr network = v6.sin6_addr;
  std::memset(network.s6_addr + 8, 0, 8);
  ::inet_ntop(AF_INET6, &network, text, sizeof(text));
  end.network = fmt::format("{}/64", text);
  return end;
}

}  // namespace

ConnectionEnds ReadConnectionEnds(int fd, OwnerLookup lookup) {
  ConnectionEnds ends;
  sockaddr_storage remote = {};
  sockaddr_storage local = {};
  socklen_t remote_bytes = sizeof(remote);
  socklen_t local_bytes = sizeof(local);
  ends.peer.kind = Peer::Kind::kNetwork;  // The least trusted, should the kernel not tell.
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&remote), &remote_bytes) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_bytes) != 0) {
    return ends;
  }
  if (local.ss_family == AF_UNIX) {
    ends.peer.kind = Peer::Kind::kUnixSocket;
    ends.peer.address = "unix";
    ucred credentials = {};
    socklen_t bytes = sizeof(credentials);
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) == 0) ends.peer.uid = credentials.uid;
  } else {
    const IpEnd end = ReadIp(remote);
    ends.local_address = ReadIp(local).text;
    ends.peer.address =
        end.is_v6 ? fmt::format("[{}]:{}", end.text, end.port) : fmt::format("{}:{}", end.text, end.port);
    ends.source = end.network;
    if (end.is_loopback) {
      ends.peer.kind = Peer::Kind::kLoopback;
      if (lookup == OwnerLookup::kLoopback) ends.peer.uid = OwnerOfPeer(fd);
    }
  }
  if (ends.peer.uid) ends.source = fmt::format("uid {}", *ends.peer.uid);
  return ends;
}

}  // namespace lockstep::http
