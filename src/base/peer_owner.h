#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

struct sockaddr_storage;

namespace lockstep {

/// The user whose process made the other end of the connected TCP socket `fd`, when that end is on this machine and in
/// this network namespace: by the kernel's socket tables (sock_diag; where that is not to be had, /proc/net/tcp and
/// tcp6). A program that passes others' connections on, such as a proxy, is the owner of those. Nullopt: not known.
/// Then too when the other end has begun to close: the kernel names root as the owner of sockets whose process has
/// gone.
std::optional<uint32_t> OwnerOfPeer(int fd);

/// What OwnerOfPeer tries, each by itself. `client` is the other end's address, `server` this one's. Error: the kernel
/// does not answer such questions.
Result<std::optional<uint32_t>> OwnerBySockDiag(const sockaddr_storage& client, const sockaddr_storage& server);
/// `table` is the text of /proc/net/tcp or tcp6.
std::optional<uint32_t> OwnerByProcTable(std::string_view table, const sockaddr_storage& client,
                                         const sockaddr_storage& server);

}  // namespace lockstep
