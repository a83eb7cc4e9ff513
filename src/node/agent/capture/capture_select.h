#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "node/agent/capture/capture_manager.h"
#include "node/control/api/capture.h"
#include "node/control/api/process.h"

namespace lockstep::agent {

/// What a selector finds among a node's processes.
struct Selection {
  std::vector<control::Process> chosen;  ///< By rank, then pid; at most the spec's process_limit.
  uint32_t forbidden_count = 0;          ///< Match, but the caller may not trace them.
  uint32_t launcher_count = 0;           ///< Match, but are launchers or helpers.
};

/// Launchers and helpers are left out unless they are asked for, by include_launchers or by their own process id.
/// A job id matches a longer one up to a dot ("123" is "123.pbs01"). Reads /proc for the ancestors of processes when
/// pids are asked for.
Selection Select(const std::vector<control::Process>& processes, const control::CaptureSpec& spec,
                 const Caller& caller);

/// Whether the processes are whole jobs: of each job's world size, all ranks are there.
bool IsWholeWorld(const std::vector<control::Process>& chosen);

/// For the error of a capture without a match: what was asked for, and what of the caller's is registered.
std::string DescribeNoMatch(const std::vector<control::Process>& processes, const control::CaptureSpec& spec,
                            const Caller& caller, const Selection& selection);

}  // namespace lockstep::agent
