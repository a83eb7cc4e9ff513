#include "exchange.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>

namespace fake_nccl {
namespace {

sockaddr_un AddressOf(const std::string& name, int rank) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // A name of no file: the first byte is zero.
  const std::string text = name + "-" + std::to_string(rank);
  std::memcpy(address.sun_path + 1, text.data(), std::min(text.size(), sizeof(address.sun_path) - 2));
  return address;
}

}  // namespace

Mesh::Mesh(const std::string& name, int own_rank, int rank_count)
    : rank(own_rank), size(rank_count), sockets_(rank_count, -1) {
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un own = AddressOf(name, rank);
  ::bind(listener, reinterpret_cast<const sockaddr*>(&own), sizeof(own));
  ::listen(listener, size);
  for (int peer = 0; peer < rank; ++peer) {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un theirs = AddressOf(name, peer);
    while (::connect(socket, reinterpret_cast<const sockaddr*>(&theirs), sizeof(theirs)) != 0) ::usleep(1000);
    [[maybe_unused]] const auto written = ::write(socket, &rank, sizeof(rank));
    sockets_[static_cast<size_t>(peer)] = socket;
  }
  for (int i = rank + 1; i < size; ++i) {
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    int peer = 0;
    [[maybe_unused]] const auto got = ::recv(socket, &peer, sizeof(peer), MSG_WAITALL);
    sockets_[static_cast<size_t>(peer)] = socket;
  }
  ::close(listener);
  for (const int socket : sockets_) {
    if (socket >= 0) ::fcntl(socket, F_SETFL, O_NONBLOCK);
  }
}

bool Mesh::Exchange(std::vector<Transfer> transfers) {
  std::vector<std::deque<Transfer>> sends(static_cast<size_t>(size));
  std::vector<std::deque<Transfer>> receives(static_cast<size_t>(size));
  for (const Transfer& transfer : transfers) {
    (transfer.receive == nullptr ? sends : receives)[static_cast<size_t>(transfer.peer)].push_back(transfer);
  }
  const auto own = static_cast<size_t>(rank);
  while (!sends[own].empty() && !receives[own].empty()) {
    std::memmove(receives[own].front().receive, sends[own].front().send, sends[own].front().bytes);
    sends[own].pop_front();
    receives[own].pop_front();
  }
  while (!is_aborted_) {
    std::vector<pollfd> waits;
    for (size_t peer = 0; peer < sockets_.size(); ++peer) {
      const int events = (sends[peer].empty() ? 0 : POLLOUT) | (receives[peer].empty() ? 0 : POLLIN);
      waits.push_back({events == 0 ? -1 : sockets_[peer], static_cast<short>(events), 0});
    }
    if (std::all_of(waits.begin(), waits.end(), [](const pollfd& wait) { return wait.fd < 0; })) return true;
    ::poll(waits.data(), waits.size(), 10);
    for (size_t peer = 0; peer < waits.size(); ++peer) {
      if ((waits[peer].revents & POLLOUT) != 0) {
        Transfer& next = sends[peer].front();
        const ssize_t count = ::send(sockets_[peer], next.send, next.bytes, MSG_NOSIGNAL);
        if (count < 0 && errno != EAGAIN) return false;
        next.send += std::max<ssize_t>(count, 0);
        next.bytes -= static_cast<size_t>(std::max<ssize_t>(count, 0));
        if (next.bytes == 0) sends[peer].pop_front();
      }
      if ((waits[peer].revents & (POLLIN | POLLHUP)) != 0 && !receives[peer].empty()) {
        Transfer& next = receives[peer].front();
        const ssize_t count = ::recv(sockets_[peer], next.receive, next.bytes, 0);
        if (count == 0 || (count < 0 && errno != EAGAIN)) return false;
        next.receive += std::max<ssize_t>(count, 0);
        next.bytes -= static_cast<size_t>(std::max<ssize_t>(count, 0));
        if (next.bytes == 0) receives[peer].pop_front();
      }
    }
  }
  return false;
}

}  // namespace fake_nccl
