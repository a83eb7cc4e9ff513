#pragma once

#include <string>

#include "base/result.h"

namespace lockstep::local {

/// The caller's own folder for a daemon's socket and what belongs to it, on this machine only, the first that can be
/// had: that of $LOCKSTEP_SOCKET; for root /run/lockstep, for others $XDG_RUNTIME_DIR/lockstep; /tmp/lockstep-UID/HOST.
/// Made where it is missing (mode 0700). One that is not the caller's alone is never used: others could put their files
/// in the place of ours. Errors: kPermissionDenied, kIo.
Result<std::string> MakeRuntimeFolder();

/// The socket of a daemon of the caller's own: $LOCKSTEP_SOCKET where it lies in `runtime_folder`, else lockstepd.sock.
std::string OwnDaemonSocket(const std::string& runtime_folder);

}  // namespace lockstep::local
