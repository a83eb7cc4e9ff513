#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "node/control/api/inspection.h"

namespace lockstep::inspect {

/// Finds the processes of this node that `spec` names, registered with a daemon or not, and looks at them as it says.
/// `allowed` says whose processes may be looked at at all; `host` is this node's name. The answer has neither id nor
/// time. Errors: kNotFound (no such process), kPermissionDenied (other users'). Blocks up to spec.deadline_ns and as
/// long as /proc does.
Result<control::Inspection> LookAtJob(const control::InspectionSpec& spec,
                                      const std::function<bool(uint32_t uid)>& allowed, const std::string& host);

}  // namespace lockstep::inspect
