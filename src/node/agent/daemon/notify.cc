#include "node/agent/daemon/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/text_scan.h"
#include "base/unique_fd.h"

namespace lockstep::agent {
namespace {

std::optional<int64_t> NumberOf(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  return WholeNumber(text);
}

}  // namespace

bool NotifySystemd(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return false;
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t length = std::strlen(path);
  if (length >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return false;
  const auto size = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + length);
  const ssize_t sent = ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                                reinterpret_cast<const struct sockaddr*>(&address), size);
  return sent == static_cast<ssize_t>(state.size());
}

std::optional<int64_t> WatchdogPeriodNs() {
  const auto period_us = NumberOf("WATCHDOG_USEC");
  const auto pid = NumberOf("WATCHDOG_PID");
  if (!period_us || *period_us <= 0 || (pid && *pid != ::getpid())) return std::nullopt;
  return *period_us * 1000 / 2;
}

}  // namespace lockstep::agent
