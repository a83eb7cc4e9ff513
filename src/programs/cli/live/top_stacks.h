#pragma once

#include <string>
#include <vector>

#include "present/top/screen.h"
#include "programs/cli/node_flags.h"

namespace lockstep::cli {

/// Stacks of one process of a job, taken as `lockstep hang --pid` takes them, as lines: what was found, or why not.
std::vector<std::string> LookAtStacks(const jobs::Nodes& nodes, bool names_socket, const top::RankTarget& target);

}  // namespace lockstep::cli
