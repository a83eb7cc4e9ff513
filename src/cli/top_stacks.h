#pragma once

#include <string>
#include <vector>

#include "cli/node_flags.h"
#include "top/screen.h"

namespace lockstep::cli {

/// Stacks of one process of a job, taken as `lockstep hang --pid` takes them, as lines: what was found, or why not.
std::vector<std::string> LookAtStacks(const Nodes& nodes, bool names_socket, const top::RankTarget& target);

}  // namespace lockstep::cli
