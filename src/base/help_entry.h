#pragma once

#include <string>

namespace lockstep {

/// A line of help in two columns of 80 together: `left`, and `description` wrapped beside it, or below where `left` is
/// long.
std::string HelpEntry(const std::string& left, const std::string& description);

}  // namespace lockstep
