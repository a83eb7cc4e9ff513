#pragma once

#include <vector>

#include "analysis/finding.h"

namespace lockstep::report {

/// What a reader should take away if he reads two lines: the first finding that matters (warning or above), and who
/// holds the others up where that is another one. Empty when nothing stands out.
std::vector<const analysis::Finding*> VerdictFindings(const std::vector<analysis::Finding>& findings);

/// What is said when there is none.
inline constexpr const char* kNoVerdict = "Nothing stands out: no finding of warning or above.";

}  // namespace lockstep::report
