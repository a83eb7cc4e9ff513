#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "programs/doctor/check.h"

namespace lockstep::doctor {

/// Runs `command`, which starts lockstep-mpi-check on the nodes ("mpirun --host a,b lockstep-mpi-check"), and says
/// whether MPI's collectives work there and agree. Errors: kInvalidArgument (no command).
Result<Check> CheckCollectives(const std::string& command, int64_t timeout_ns);

/// The line for what such a command printed, and with which exit status. Pure.
Check ReadCollectives(std::string_view output, std::string_view error, int exit_status);

}  // namespace lockstep::doctor
