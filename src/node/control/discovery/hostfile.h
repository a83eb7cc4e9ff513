#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/control/discovery/hosts.h"

namespace lockstep::control {

/// A hostfile's text: see ReadHostfile. Besides "port=N", "address=A" is taken: where to connect instead of the host's
/// name; other NAME=VALUE words are passed over. Bracket lists expand. Errors: kInvalidArgument with the line,
/// kLimitExceeded over 65536 hosts.
Result<std::vector<JobNode>> ParseHostfile(std::string_view text);

}  // namespace lockstep::control
