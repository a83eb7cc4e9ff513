#pragma once

#include <string>

#include "analysis/comparison/compare.h"
#include "base/result.h"

namespace lockstep::cli {

/// The page of `lockstep compare`, whole or not at all. Errors: those of WriteOutputFile.
Status WriteComparisonPage(const comparison::Comparison& comparison, const std::string& title, bool partial,
                           const std::string& path);

}  // namespace lockstep::cli
