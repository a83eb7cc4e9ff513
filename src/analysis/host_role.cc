#include "analysis/host_role.h"

#include <algorithm>
#include <array>

#include "analysis/kernel_kind.h"
#include "base/letter_case.h"
#include "model/step_name.h"

namespace lockstep::analysis {
namespace {

constexpr std::array<std::string_view, 4> kCallPrefixes = {
    "c10d::", "_c10d_functional::", "c10d_functional::", "record_param_comms"};

}  // namespace

HostRole HostRoleOf(std::string_view name) {
  if (name.starts_with("ProfilerStep#") || model::ReadNumberedStep(name)) return HostRole::kStep;
  if (IsCpuCollectiveName(name)) return HostRole::kCollective;
  if (std::any_of(kCallPrefixes.begin(), kCallPrefixes.end(),
                  [&](std::string_view prefix) { return name.starts_with(prefix); })) {
    return HostRole::kCollectiveCall;
  }
  if (ContainsIgnoringCase(name, "dataloader")) return HostRole::kDataLoader;
  return HostRole::kWork;
}

}  // namespace lockstep::analysis
