#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace lockstep::control {

/// Carries bytes unchanged: from `input` to `socket` and from `socket` to `output`, both at a time, until the socket's
/// other side has closed and what it sent is written, or the reader of `output` has gone. The end of `input` is passed
/// on; then the socket's other side may still answer, as long as it does not keep silent for `linger_ns`. `input` and
/// `output` may be pipes, sockets (one for both too), files or terminals; their flags stay as they are, and a slow
/// reader on one side does not stop the other. Needs SIGPIPE ignored or blocked where `output` is a pipe.
/// Errors: kIo when reading or writing fails otherwise.
Status Relay(int input, int output, int socket, int64_t linger_ns = 60'000'000'000);

/// Connects to a daemon's Unix socket. Errors: kNotFound (no process listens there: says what to
/// start), kPermissionDenied, kInvalidArgument (the path is too long), kIo.
Result<UniqueFd> ConnectUnix(const std::string& path);

}  // namespace lockstep::control
