#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep {

// What is done with a socket that does not block, until a moment by SteadyNow(). Each gives 0, or what went wrong as
// errno has it: ETIME where the moment came first, ECANCELED where `stop_fd` became readable (-1: there is none).

int WaitWithin(int fd, short events, int64_t until_ns, int stop_fd = -1);
int ConnectWithin(int fd, const sockaddr* address, socklen_t size, int64_t until_ns, int stop_fd = -1);
/// All of it.
int SendWithin(int fd, std::string_view bytes, int64_t until_ns, int stop_fd = -1);
/// What there is, at most `size` bytes; none: the other end has closed.
int ReceiveWithin(int fd, void* to, size_t size, size_t* received, int64_t until_ns, int stop_fd = -1);

}  // namespace lockstep
