#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "node/agent/kineto/process_table.h"

namespace lockstep::agent {

/// One socket that clients send to, bound exactly as Kineto's own server would bind it.
struct KinetoSocket {
  UniqueFd fd;
  std::string directory;  ///< As given, which is what clients compare; empty: abstract.
  std::string label;      ///< "abstract:dynolog", or the path.
};

/// What the names of all clients' own sockets begin with.
inline constexpr std::string_view kClientPrefix = "dynoconfigclient";

/// A directory socket's path must hold the client's name of 52 characters too.
inline constexpr size_t kMaxDirectoryChars = 54;

/// Binds NUL NAME NUL. Errors: kFailedPrecondition when another process has it (names it if possible); kIo.
Result<KinetoSocket> BindAbstractSocket(const std::string& name);

/// Binds DIRECTORY/NAME with mode 0666. A socket without a listener is replaced, and sockets of clients that have ended
/// are removed. Errors: kInvalidArgument (not absolute, over 54 characters), kNotFound (no such directory),
/// kFailedPrecondition (a process answers on it; or something else has its name), kIo.
Result<KinetoSocket> BindDirectorySocket(const std::string& directory, const std::string& name);

/// Whether a reply to this address (as in Sender) may leave through this socket. For anything but kYes a reply would
/// make the client's process ABORT, or reach no process.
enum class MayAnswer : uint8_t {
  kYes,
  kNameless,     ///< The sender is not bound, or bound in the other way.
  kForeignPath,  ///< It knows this directory by another path (a symlink, a mount, a doubled slash).
};
MayAnswer CheckAddress(const KinetoSocket& socket, std::string_view address);

/// sun_path as a Sender has it; empty for a nameless one.
std::string ReadAddress(const sockaddr_un& address, socklen_t length);
/// Back again; the length for sendto.
socklen_t WriteAddress(std::string_view text, sockaddr_un* address);

/// No socket is bound to the address any more.
bool IsDeadAddress(std::string_view address);

/// Removes a dead client's file from a directory socket's folder. Only names that clients have are touched.
void RemoveClientFile(const KinetoSocket& socket, std::string_view address);

}  // namespace lockstep::agent
