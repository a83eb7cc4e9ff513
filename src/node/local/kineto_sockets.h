#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace lockstep::local {

constexpr const char* kKinetoName = "dynolog";  ///< Of the socket that PyTorch's processes look for.

/// Who serves a socket that PyTorch's processes ask, as far as the kernel tells the caller.
struct SocketOwner {
  bool bound = false;
  std::optional<uid_t> uid;  ///< Who made it.
  std::optional<pid_t> pid;  ///< A process that holds it; unset where others' processes cannot be looked at.
  std::string program;       ///< Its name, as /proc/PID/comm has it.
};

/// Of the abstract socket `name` in this network namespace, as Kineto spells it (with a NUL at both ends).
SocketOwner OwnerOfAbstractSocket(const std::string& name);
/// Of the socket with this path.
SocketOwner OwnerOfSocket(const std::string& path);

/// "process 4711 (dynolog) of user root", or what of it is known.
std::string OwnerText(const SocketOwner& owner);

/// A user's name; the number where there is none.
std::string UserName(uid_t uid);

}  // namespace lockstep::local
