#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::analysis {

/// Which passes run: those named in `only` and what they need, in registry order; all but those on request when
/// `only` is empty. `also`: one more, such as one on request.
/// Errors: kInvalidArgument for an unknown name; the message has the nearest known one.
Result<std::vector<std::string>> ResolvePasses(const std::vector<std::string>& only, std::string_view also = {});

}  // namespace lockstep::analysis
