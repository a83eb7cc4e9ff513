#pragma once

#include <string>

#include "base/result.h"
#include "comparison/compare.h"

namespace lockstep::cli {

/// The page of `lockstep compare`, whole or not at all. Errors: those of WriteOutputFile.
Status WriteComparisonPage(const comparison::Comparison& comparison, const std::string& title, bool partial,
                           const std::string& path);

}  // namespace lockstep::cli
