#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::analysis {

/// Which passes run: those named in `only` and what they need, in registry order; all when `only` is empty.
/// Errors: kInvalidArgument for an unknown name; the message has the nearest known one.
Result<std::vector<std::string>> ResolvePasses(const std::vector<std::string>& only);

}  // namespace lockstep::analysis
