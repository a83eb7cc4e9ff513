#include "analysis/kernel_profile/kernel_profile_tables.h"

#include <algorithm>

#include "analysis/pass.h"

namespace lockstep::analysis {

KernelProfileTables ComputeKernelProfiles(const model::Run& run) {
  KernelProfileTables tables;
  tables.profiles = run.kernel_profiles;
  if (tables.profiles == nullptr) return tables;
  for (const model::KernelLaunch& launch : tables.profiles->launches) {
    tables.launches.push_back({&launch, BoundOf(launch)});
  }
  std::stable_sort(tables.launches.begin(), tables.launches.end(), [](const auto& a, const auto& b) {
    return a.launch->duration_ns.value_or(0) > b.launch->duration_ns.value_or(0);
  });
  for (const KernelLaunchRow& row : tables.launches) {
    for (const RooflinePoint& point : RooflineOf(*row.launch)) tables.rooflines.push_back({row.launch, point});
  }
  tables.sums = SumOverRanks(*tables.profiles);
  return tables;
}

Pass MeasuredKernelsPass() {
  return RunPass<KernelProfileTables>(
      {.question = "What bounds the kernels, where tables of Nsight Compute lie beside the traces?"},
      [](PassContext& context) { return ComputeKernelProfiles(context.run()); });
}

}  // namespace lockstep::analysis
