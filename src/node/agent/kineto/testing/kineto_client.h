#pragma once

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "node/agent/kineto/datagram.h"
#include "node/agent/kineto/kineto_socket.h"

namespace lockstep::agent::testing {

/// A socket name of this test alone: abstract names are shared by all of a network namespace.
inline std::string UniqueName() {
  static int count = 0;
  return fmt::format("lockstep-test-{}-{}", ::getpid(), ++count);
}

/// A client that behaves as Kineto's does: one datagram out, then a look for a reply at once and each 10 ms after. It
/// reads whatever is in its queue, also when that answers an older request.
class KinetoClient {
 public:
  /// `directory` empty: abstract. The address is bound as Kineto binds it.
  KinetoClient(const std::string& server_name, const std::string& directory)
      : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    std::random_device random;
    const std::string name =
        fmt::format("dynoconfigclient{:08x}-{:04x}-{:04x}-{:04x}-{:08x}{:04x}", random(), random() & 0xffff,
                    random() & 0xffff, random() & 0xffff, random(), random() & 0xffff);
    const auto path = [&](const std::string& end) {
      return directory.empty() ? std::string(1, '\0') + end + '\0' : directory + "/" + end;
    };
    address_ = path(name);
    server_ = path(server_name);
    sockaddr_un address;
    const socklen_t length = WriteAddress(address_, &address);
    bound_ = ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0;
    if (!directory.empty()) ::chmod(address_.c_str(), 0666);
  }

  bool bound() const { return bound_; }
  const std::string& address() const { return address_; }
  int fd() const { return fd_.get(); }

  bool Send(const std::vector<std::byte>& bytes) const {
    sockaddr_un address;
    const socklen_t length = WriteAddress(server_, &address);
    for (int attempt = 0; attempt < 1000; ++attempt) {
      if (::sendto(fd_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&address), length) >= 0)
        return true;
      if (errno != EAGAIN) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // The server's queue is full.
    }
    return false;
  }
  bool SendPoll(int32_t mask = 3) const {
    return Send(WritePoll({.mask = mask, .job_id = 0, .pids = {static_cast<int32_t>(::getpid()), 1}}));
  }

  /// The oldest waiting datagram's payload, or nullopt.
  std::optional<std::string> Read() const {
    std::vector<char> buffer(size_t{256} << 10);
    const ssize_t size = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < static_cast<ssize_t>(kHeaderBytes)) return std::nullopt;
    return std::string(buffer.data() + kHeaderBytes, static_cast<size_t>(size) - kHeaderBytes);
  }
  std::optional<std::string> ReadWithin(std::chrono::milliseconds budget) const {
    pollfd waited = {.fd = fd_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&waited, 1, static_cast<int>(budget.count())) > 0 ? Read() : std::nullopt;
  }
  /// A whole poll with Kineto's budget: 5 looks in versions to 2.9, 9 in newer ones.
  std::optional<std::string> Poll(int32_t mask = 3, int looks = 5) const {
    if (!SendPoll(mask)) return std::nullopt;
    for (int look = 0; look < looks; ++look) {
      if (auto reply = Read()) return reply;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return std::nullopt;
  }

 private:
  UniqueFd fd_;
  std::string address_;
  std::string server_;
  bool bound_ = false;
};

}  // namespace lockstep::agent::testing
