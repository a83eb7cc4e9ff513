#pragma once

#include <string>

#include "node/control/api/process.h"

namespace lockstep::control {

/// Why tracing this process may crash it, as a sentence for a reader; empty: no risk is known. Kineto of PyTorch before
/// 2.14 frees the state of its callbacks while operators of other threads still use it (docs/capture.md).
std::string CaptureRisk(const Process& process);

/// What to do about it, to follow the above.
inline constexpr const char* kCaptureRiskRemedy =
    "start jobs with 'lockstep run', or call lockstep.enable_captures(), and they are traced by their steps; or "
    "allow it with --allow-unsafe";

}  // namespace lockstep::control
