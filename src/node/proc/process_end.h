#pragma once

#include <cstdint>

#include "node/control/api/process.h"

namespace lockstep::proc {

/// How the process ended that `pidfd` and `pid` are of, asked at `now_unix_ns`, when the kernel has just said that it
/// has. While it is a zombie its status is in /proc (field 52 of stat), for whoever may trace it; once it was waited
/// for, Linux 6.15 and later tell it through the pidfd (PIDFD_GET_INFO).
control::ProcessEnd ReadProcessEnd(int pidfd, int32_t pid, int64_t now_unix_ns);

/// Of a status as waitpid() gives it.
control::ProcessEnd EndOfStatus(int wait_status, int64_t unix_ns);

}  // namespace lockstep::proc
