#pragma once

#include <string>
#include <utility>

namespace lockstep::cli {

/// What tells two paths apart, for a title: each without the folders that both begin with, and without the parts that
/// both end with. "before", "after" of /runs/before/traces and /runs/after/traces. Neither is ever empty.
std::pair<std::string, std::string> RunNames(const std::string& a, const std::string& b);

}  // namespace lockstep::cli
