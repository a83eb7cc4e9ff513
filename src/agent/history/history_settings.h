#pragma once

#include <cstdint>

namespace lockstep::agent {

/// `[history]` of the settings.
struct HistorySettings {
  int64_t keep_ns = 15LL * 60 * 1'000'000'000;          ///< At a look a second; 0: no history at all.
  int64_t coarse_keep_ns = 6LL * 3600 * 1'000'000'000;  ///< At coarse_every_ns.
  int64_t coarse_every_ns = 10LL * 1'000'000'000;
  uint64_t limit_bytes = uint64_t{16} << 20;
  bool operator==(const HistorySettings&) const = default;
};

}  // namespace lockstep::agent
