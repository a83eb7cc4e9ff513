#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace lockstep::inspect {

/// Connects to a Unix socket by its path as `pid` sees it, as that process's user, when `pid` itself listens there.
/// Gives this process's other rights up (privilege.h): for workers. Invalid: it could not.
UniqueFd ConnectTo(pid_t pid, const std::string& path);

/// Sends `request` and hands what is answered to `take`, at most 256 MiB, until the peer closes; false: it did not
/// within the time, `take` said no, or the connection broke.
bool Exchange(int socket, std::string_view request, int64_t deadline_monotonic_ns,
              const std::function<bool(std::string_view)>& take);

struct HttpAnswer {
  int status = 0;
  std::string body;
};
/// One POST with an empty body over loopback (IPv4, then IPv6); nullopt: no answer in time, or none of HTTP.
std::optional<HttpAnswer> PostTo(uint16_t port, std::string_view path, int64_t deadline_monotonic_ns);
/// A whole HTTP answer; a body cut short of its Content-Length is none.
std::optional<HttpAnswer> ParseHttpAnswer(std::string_view bytes);

}  // namespace lockstep::inspect
