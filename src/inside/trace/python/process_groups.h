#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <lockstep/trace.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace lockstep::hooks {

/// Which process group a wait of the host is for. What was issued on a group is a Work, and whoever waits for it knows
/// no more than that. Everything with the interpreter's lock held.
struct Issued {
  size_t group = SIZE_MAX;   ///< The number of a group, if it is one.
  bool is_pairwise = false;  ///< Sent to one peer, or received from it.
  /// The device does it between what the job had it do before and after: nothing is left to be waited for.
  bool is_in_stream = false;
};

/// The number of a group of PyTorch's. `name_of`, of one that is new: "dp[0,2]", "" of the group of all ranks, nullopt
/// where it cannot be told. Groups go, and their numbers are given again.
size_t NumberOfGroup(PyObject* group, std::optional<std::string> (*name_of)(PyObject*));

/// As model::ReadWait() reads it: "dp[0,2]/comm", "comm", "p2p". Once recording has begun. `on_device`: of the device's
/// wait, "device_stage/comm".
lockstep_name_t WaitName(const Issued& issued, bool on_device);

/// What was issued, by what somebody will wait for: a Work, or the storage of a tensor. Of what nobody waits for, only
/// the newest are known.
class AwaitedWorks {
 public:
  void Remember(const void* what, const Issued& issued);
  /// Forgets it, too: another may lie there next. Nullopt: unknown.
  std::optional<Issued> Take(const void* what);

 private:
  std::unordered_map<const void*, Issued> issued_;
};

}  // namespace lockstep::hooks
