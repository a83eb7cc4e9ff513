#include <unordered_map>

#include "node/proc/process_details.h"

namespace lockstep::proc {

using control::ProcessRole;

void AssignRoles(std::vector<RoleInput>* processes) {
  std::unordered_map<int32_t, size_t> by_pid;
  for (size_t i = 0; i < processes->size(); ++i) {
    if ((*processes)[i].pid > 0) by_pid.emplace((*processes)[i].pid, i);
  }
  const auto has_rank = [](const RoleInput& process) { return process.details != nullptr && process.details->rank; };
  for (RoleInput& process : *processes) {
    process.role = ProcessRole::kTrainer;
    if (process.details == nullptr) continue;
    if (process.details->launcher) {
      process.role = ProcessRole::kLauncher;
      continue;
    }
    if (process.details->helper) process.role = ProcessRole::kHelper;
    for (const int32_t ancestor : process.details->ancestors) {
      const auto found = by_pid.find(ancestor);
      if (found == by_pid.end() || !has_rank(process) || !has_rank((*processes)[found->second])) continue;
      const ProcessDetails& above = *(*processes)[found->second].details;
      if (above.rank == process.details->rank && above.rank_source == process.details->rank_source)
        process.role = ProcessRole::kHelper;
    }
  }
  for (const RoleInput& process : *processes) {
    if (process.details == nullptr || process.role == ProcessRole::kHelper) continue;
    for (const int32_t ancestor : process.details->ancestors) {
      const auto found = by_pid.find(ancestor);
      if (found == by_pid.end()) continue;
      RoleInput& above = (*processes)[found->second];
      if (above.details == nullptr || above.role == ProcessRole::kHelper) continue;
      const bool outer_rank = has_rank(process) && above.details->rank_source != process.details->rank_source;
      if (!has_rank(above) || outer_rank) above.role = ProcessRole::kLauncher;
    }
  }
}

}  // namespace lockstep::proc
