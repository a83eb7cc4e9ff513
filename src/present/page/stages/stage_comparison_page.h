#pragma once

#include <optional>
#include <string>

#include "analysis/stage_comparison/stage_comparison.h"

namespace lockstep::page {

/// A self-contained HTML page without scripts: the verdict and the gate, the step and its stages of both runs, windows
/// of steps drawn, whole runs, and the text. Light and dark by the reader's choice.
std::string StageComparisonPage(const stage_comparison::StageComparison& comparison,
                                const std::optional<stage_comparison::Gate>& gate);

}  // namespace lockstep::page
