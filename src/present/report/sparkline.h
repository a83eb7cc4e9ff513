#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "present/report/style.h"

namespace lockstep::report {

/// The last `width` values, each as high as it is between least and most; constant ones are flat.
std::string Sparkline(const std::vector<int64_t>& values, int width, const Style& style);

}  // namespace lockstep::report
