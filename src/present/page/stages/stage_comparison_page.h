#pragma once

#include <optional>
#include <string>

#include "analysis/stage_comparison/stage_comparison.h"

namespace lockstep::page {

/// The page (answer_page.h): the verdict and the gate, the step and its stages of both runs, windows of steps, whole
/// runs; its data is StageComparisonDataJson().
std::string StageComparisonPage(const stage_comparison::StageComparison& comparison,
                                const std::optional<stage_comparison::Gate>& gate);

}  // namespace lockstep::page
