#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/name_table.h"

namespace lockstep::analysis {

/// What the name of a CPU range says beyond its category.
enum class HostRole : uint8_t {
  kUnknown,     ///< Not looked at yet (HostRoles only).
  kWork,        ///< An ordinary operator or annotation.
  kStep,        ///< "ProfilerStep#N": a window, not work.
  kDataLoader,  ///< Waiting for, or making, input: the name has "dataloader" in any case.
  kCollective,  ///< Range of a CPU backend's collective (IsCpuCollectiveName). It ends on another thread: asynchronous.
  kCollectiveCall,  ///< Call that issues or awaits a collective: c10d::..., _c10d_functional::wait_tensor,
                    ///< record_param_comms.
};

HostRole HostRoleOf(std::string_view name);

/// HostRoleOf by NameId, each name looked at once. Not thread-safe: one per rank and pass.
class HostRoles {
 public:
  explicit HostRoles(const model::NameTable& names) : names_(names), roles_(names.size(), HostRole::kUnknown) {}
  HostRole operator[](NameId name) {
    HostRole& role = roles_[name.value];
    if (role == HostRole::kUnknown) role = HostRoleOf(names_[name]);
    return role;
  }

 private:
  const model::NameTable& names_;
  std::vector<HostRole> roles_;
};

}  // namespace lockstep::analysis
