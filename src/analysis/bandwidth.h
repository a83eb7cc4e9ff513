#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/collectives.h"

namespace lockstep::analysis {

/// All instances of one operation, group size and message size that have a bandwidth. Waiting is not included: algbw =
/// bytes / transfer_ns. Source: docs/metrics.md#bandwidth-points.
struct BandwidthRow {
  std::string name;
  std::optional<int32_t> group_size;
  int64_t bytes = 0;
  uint64_t count = 0;
  std::array<double, 5> busbw_bytes_per_s = {};  ///< Minimum, quartiles, maximum.
  double algbw_median_bytes_per_s = 0;
};

/// By (name, group size, bytes); instances without busbw (incomplete, size unknown) are left out.
std::vector<BandwidthRow> ComputeBandwidth(const Collectives& collectives);

}  // namespace lockstep::analysis
