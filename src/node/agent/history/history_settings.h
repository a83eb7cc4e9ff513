#pragma once

#include <cstdint>

#include "base/nanoseconds.h"

namespace lockstep::agent {

/// `[history]` of the settings.
struct HistorySettings {
  int64_t keep_ns = 15 * 60 * kSecondNs;  ///< At a look a second; 0: no history at all.
  int64_t coarse_keep_ns = 6 * kHourNs;   ///< At coarse_every_ns.
  int64_t coarse_every_ns = 10 * kSecondNs;
  uint64_t limit_bytes = uint64_t{16} << 20;
  bool operator==(const HistorySettings&) const = default;
};

}  // namespace lockstep::agent
