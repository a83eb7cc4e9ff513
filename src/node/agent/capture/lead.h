#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "node/control/api/capture.h"
#include "node/control/api/process.h"

namespace lockstep::agent {

/// Whether a process holds a device whose tracing needs a warm-up.
bool IsDeviceTraced(const control::Process& process);

/// How long before a common start the daemon must have a request so that every process can take part: the longest poll
/// period + the longest warm-up + 2 s of Kineto's own ticks.
int64_t LeastLeadNs(const std::vector<control::Process>& processes, const control::CaptureWindow& window);

/// Ok without a common start. Errors: kInvalidArgument: a start in the past or nearer than the least lead, which would
/// silently lose processes; the message has the least that works.
Status CheckLead(const std::vector<control::Process>& processes, const control::CaptureWindow& window,
                 int64_t now_unix_ns);

}  // namespace lockstep::agent
