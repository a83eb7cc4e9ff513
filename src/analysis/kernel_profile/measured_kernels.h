#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "analysis/kernel_profile/kernel_bounds.h"
#include "model/kernel_profile.h"
#include "model/run.h"

namespace lockstep::analysis {

/// A launch that Nsight Compute measured.
struct KernelLaunchRow {
  const model::KernelLaunch* launch = nullptr;  ///< Of KernelProfileTables::profiles.
  KernelBound bound = KernelBound::kUnknown;
};

/// Its place under the roofline of one kind of arithmetic.
struct KernelRooflineRow {
  const model::KernelLaunch* launch = nullptr;
  RooflinePoint point;
};

/// What the tables of kernels beside the traces say. Source: docs/metrics.md#kernel-profiles.
struct KernelProfileTables {
  static constexpr std::string_view kPass = "measured_kernels";

  std::shared_ptr<const model::KernelProfiles> profiles;  ///< Shared with the run: rows point into it. Null: none.
  std::vector<KernelLaunchRow> launches;                  ///< Longest first.
  std::vector<KernelRooflineRow> rooflines;               ///< In the order of launches; most operations first.
  std::vector<NameOverRanks> sums;                        ///< By kind, largest total first.
};

/// Cost: O(n log n) in launches and sums.
KernelProfileTables ComputeKernelProfiles(const model::Run& run);

}  // namespace lockstep::analysis
