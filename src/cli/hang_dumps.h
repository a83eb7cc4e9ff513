#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lockstep::cli {

/// Variables with which every Python process of a job that has a rank answers `lockstep hang` without a change to it:
/// PYTHONPATH begins with a folder below `runtime_folder` whose sitecustomize enables python/lockstep/_hang.py (built
/// in) and then runs the sitecustomize that it hides, if there is one; and the flight recorder has a buffer. Errors:
/// kIo, kPermissionDenied (the folder cannot be written).
Result<std::vector<std::pair<std::string, std::string>>> MakeHangDumpEnvironment(const std::string& runtime_folder);

}  // namespace lockstep::cli
