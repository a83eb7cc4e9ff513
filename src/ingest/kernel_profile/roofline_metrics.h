#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/kernel_profile.h"

namespace lockstep::ingest {

/// Metrics of one launch by ncu's name, in base units.
using NcuMetrics = std::map<std::string, double, std::less<>>;

std::optional<double> Find(const NcuMetrics& metrics, std::string_view name);

/// Arithmetic and DRAM traffic of the launch with the device's ceilings, as far as the metrics go, and which metrics
/// the FP32 roofline lacks. Formulas: docs/formats/kernel-profiles.md#roofline.
void AddRoofline(const NcuMetrics& metrics, model::KernelLaunch* launch);

}  // namespace lockstep::ingest
