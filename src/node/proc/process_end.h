#pragma once

#include <cstdint>

#include "node/control/api/process.h"

namespace lockstep::proc {

/// How the process of `pidfd` and `pid` ended, asked at `now_unix_ns`, just after the kernel reported its end. While it
/// is a zombie, its status is in /proc (field 52 of stat), for readers that may trace it. After its parent has waited
/// for it, Linux 6.15 and later give the status through the pidfd (PIDFD_GET_INFO).
control::ProcessEnd ReadProcessEnd(int pidfd, int32_t pid, int64_t now_unix_ns);

/// Of a status as waitpid() gives it.
control::ProcessEnd EndOfStatus(int wait_status, int64_t unix_ns);

}  // namespace lockstep::proc
