#pragma once

#include <string>

#include "model/kernel_profile.h"

namespace lockstep::page {

/// A self-contained HTML page without scripts: for each device and kind of arithmetic its roofline with the launches
/// under it, as SVG with a table beside it, and the text report. Light and dark by the reader's choice.
std::string KernelProfilePage(const model::KernelProfiles& profiles);

}  // namespace lockstep::page
