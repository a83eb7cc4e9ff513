#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep {

/// "1, 4-6" of {1, 4, 5, 6}, which must be sorted.
std::string NumberRangesText(const std::vector<size_t>& sorted);

}  // namespace lockstep
