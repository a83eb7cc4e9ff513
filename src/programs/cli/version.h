#pragma once

#include <string>

namespace lockstep::cli {

/// "lockstep 0.1.0".
std::string VersionText();

}  // namespace lockstep::cli
