#pragma once

#include <cstdint>
#include <vector>

#include "analysis/hang/job_view.h"

namespace lockstep::hang {

/// A rank on whose device an operation is open that another member's device has completed, or has not begun that all
/// other members' devices have begun.
struct DeviceLag {
  int32_t rank = 0;
  uint32_t group = 0;
  const Track* track = nullptr;
  int64_t sequence = 0;  ///< The oldest such operation.
  uint32_t entry = kNone;
  int64_t behind = 0;  ///< How far the furthest member's completion is ahead of this rank's; 0: no member completed it.
  int32_t ahead_rank = 0;
  bool has_not_begun() const { return behind == 0; }
};

/// Only of backends that complete on the device, and not of p2p, whose sides complete apart. By rank; for each rank its
/// oldest.
std::vector<DeviceLag> FindDeviceLag(const JobView& view);

}  // namespace lockstep::hang
