#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"

namespace lockstep::control::testing {

/// A real listener that answers what the test says, right or wrong: bytes as they are, on as many connections as come.
class ScriptedServer {
 public:
  struct Request {
    std::string head;  ///< Request line and headers, as sent.
    std::string body;
    int connection = 0;  ///< Of the server's life, from 0.
  };
  struct Answer {
    std::string bytes;
    bool close = false;  ///< After the bytes.
    bool hang = false;   ///< Nothing more happens on this connection until the client leaves it.
  };
  using Script = std::function<Answer(const Request&)>;

  explicit ScriptedServer(Script script) : script_(std::move(script)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    Listen(AF_INET, reinterpret_cast<sockaddr*>(&address), size);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ::ntohs(address.sin_port);
  }
  ScriptedServer(const std::string& unix_path, Script script) : script_(std::move(script)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof(address.sun_path), "%s", unix_path.c_str());
    Listen(AF_UNIX, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  }
  ~ScriptedServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    accepting_ = {};  // Joined: no connection is added from here on.
    const MutexLock lock(mutex_);
    for (const UniqueFd& fd : connections_) ::shutdown(fd.get(), SHUT_RDWR);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  uint16_t port() const { return port_; }
  int connection_count() {
    const MutexLock lock(mutex_);
    return static_cast<int>(connections_.size());
  }
  std::vector<Request> requests() {
    const MutexLock lock(mutex_);
    return requests_;
  }

 private:
  void Listen(int family, const sockaddr* address, socklen_t size) {
    listener_ = UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(listener_.get(), address, size) != 0 || ::listen(listener_.get(), 64) != 0) std::perror("listen");
    accepting_ = std::jthread([this] {
      for (int fd = 0; (fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
        const MutexLock lock(mutex_);
        const int index = static_cast<int>(connections_.size());
        connections_.emplace_back(fd);
        threads_.emplace_back([this, fd, index] { Serve(fd, index); });
      }
    });
  }

  void Serve(int fd, int index) {
    std::string bytes;
    for (;;) {
      const std::optional<Request> request = Read(fd, index, &bytes);
      if (!request) return;
      {
        const MutexLock lock(mutex_);
        requests_.push_back(*request);
      }
      const Answer answer = script_(*request);
      size_t sent = 0;
      while (sent < answer.bytes.size()) {
        const ssize_t now = ::send(fd, answer.bytes.data() + sent, answer.bytes.size() - sent, MSG_NOSIGNAL);
        if (now <= 0) return;
        sent += static_cast<size_t>(now);
      }
      if (answer.hang) {
        char byte = 0;
        while (::recv(fd, &byte, 1, 0) > 0) {
        }
        return;
      }
      if (answer.close) {
        ::shutdown(fd, SHUT_RDWR);
        return;
      }
    }
  }

  static std::optional<Request> Read(int fd, int index, std::string* bytes) {
    for (;;) {
      const size_t end = bytes->find("\r\n\r\n");
      if (end != std::string::npos) {
        const std::string head = bytes->substr(0, end + 2);
        size_t length = 0;
        for (size_t line = head.find("\r\n"); line != std::string::npos; line = head.find("\r\n", line + 2)) {
          if (::strncasecmp(head.c_str() + line + 2, "content-length:", 15) == 0) {
            length = std::strtoul(head.c_str() + line + 17, nullptr, 10);
          }
        }
        if (bytes->size() >= end + 4 + length) {
          Request request{head, bytes->substr(end + 4, length), index};
          bytes->erase(0, end + 4 + length);
          return request;
        }
      }
      char window[65536];
      const ssize_t got = ::recv(fd, window, sizeof(window), 0);
      if (got <= 0) return std::nullopt;
      bytes->append(window, static_cast<size_t>(got));
    }
  }

  const Script script_;
  UniqueFd listener_;
  uint16_t port_ = 0;
  Mutex mutex_;
  std::vector<UniqueFd> connections_ LOCKSTEP_GUARDED_BY(mutex_);  // Kept until the end: numbers are not used twice.
  std::vector<Request> requests_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_ LOCKSTEP_GUARDED_BY(mutex_);
  std::jthread accepting_;
};

/// A whole answer.
inline std::string Http(int status, const std::string& body, const std::string& more_headers = "") {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         more_headers + "\r\n" + body;
}

}  // namespace lockstep::control::testing
