#pragma once

#include <string>
#include <vector>

#include "analysis/finding.h"

namespace lockstep::report {

/// What a reader should take away if he reads two lines: the first finding that matters (warning or above), and who
/// holds the others up where that is another one and saves at least kLeastHeadlineGain. Empty when nothing stands out.
std::vector<const analysis::Finding*> VerdictFindings(const std::vector<analysis::Finding>& findings);

inline constexpr double kLeastHeadlineGain = 0.02;  ///< Of a step.

/// "saves up to 12.2 ms a step (39 %)"; of a run without steps "in this window"; empty: not known.
std::string GainWords(const analysis::Finding& finding, bool has_steps);

/// The same for a headline: "costs up to 39 % of a step".
std::string HeadlineGain(const analysis::Finding& finding, bool has_steps);

/// What is said when there is none.
inline constexpr const char* kNoVerdict = "Nothing stands out: no finding of warning or above.";

}  // namespace lockstep::report
