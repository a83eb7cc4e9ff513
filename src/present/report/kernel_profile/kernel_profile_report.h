#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "model/kernel_profile.h"

namespace lockstep::report {

struct KernelTextOptions {
  bool colour = false;
  int columns = 100;
  bool unicode = true;
  bool all = false;  ///< Every launch, name and rule, not only the first ones.
};

/// Launches with what bounds them, their place under the roofline, what ncu advises; then sums over ranks.
void WriteKernelText(const model::KernelProfiles& profiles, const KernelTextOptions& options, std::ostream& out);
/// One object, "lockstep.kernels/1" (docs/json.md, docs/schema/kernels-1.schema.json).
void WriteKernelJson(const model::KernelProfiles& profiles, std::ostream& out);
/// Its member "data".
std::string KernelDataJson(const model::KernelProfiles& profiles);
/// Its member "partial": something of what was given could not be read.
bool IsPartial(const model::KernelProfiles& profiles);

/// "4.98 TFLOP/s"
std::string FormatFlopRate(double flops_per_s);

}  // namespace lockstep::report
