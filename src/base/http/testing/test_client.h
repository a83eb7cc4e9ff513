#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace lockstep::http {

/// A client that says what it likes.
class Client {
 public:
  explicit Client(uint16_t port, const char* source = "127.0.0.1") : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in from = {};
    from.sin_family = AF_INET;
    ::inet_pton(AF_INET, source, &from.sin_addr);
    const int on = 1;  // Else the search for a port becomes long after many connections.
    ::setsockopt(fd_.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)) != 0) return;
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  explicit Client(const std::string& unix_path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, unix_path.data(), std::min(unix_path.size(), sizeof(address.sun_path) - 1));
    connected_ = ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  bool connected() const { return connected_; }

  /// False once the server has closed.
  bool Say(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void Finish() { ::shutdown(fd_.get(), SHUT_WR); }

  /// Everything until the server closes, or nothing more comes for `patience_ms`.
  std::string Hear(int patience_ms = 20'000) { return HearUntil({}, patience_ms); }
  /// Everything until `end` has come; an empty one never does.
  std::string HearUntil(std::string_view end, int patience_ms = 20'000) {
    std::string heard;
    char window[65536];
    pollfd waiting = {fd_.get(), POLLIN, 0};
    while (::poll(&waiting, 1, patience_ms) == 1) {
      const ssize_t count = ::recv(fd_.get(), window, sizeof(window), 0);
      if (count <= 0) {
        closed_ = true;
        break;
      }
      heard.append(window, static_cast<size_t>(count));
      if (!end.empty() && heard.find(end) != std::string::npos) break;
    }
    return heard;
  }
  bool closed() const { return closed_; }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  bool connected_ = false;
  bool closed_ = false;
};

}  // namespace lockstep::http
