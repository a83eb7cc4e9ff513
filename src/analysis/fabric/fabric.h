#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/collectives.h"
#include "model/fabric.h"

namespace lockstep::analysis {

class AnalysisResult;

/// Collectives of one operation, group size and message size beside what the fabric can do. Source:
/// docs/metrics.md#fabric.
struct FabricRow {
  std::string name;
  std::optional<int32_t> group_size;
  int64_t bytes = 0;
  uint64_t count = 0;
  int64_t transfer_ns = 0;  ///< Of all of them, waiting not included.
  double busbw_median_bytes_per_s = 0;
  double fabric_busbw_bytes_per_s = 0;  ///< At this size, between the measured ones by interpolation.
  double ratio = 0;                     ///< The first over the second.
};

/// The longest first; operations that were not measured are left out.
std::vector<FabricRow> CompareWithFabric(const Collectives& collectives, const model::Fabric& fabric);

/// Share of what the fabric can do, over all rows, by time: how long they would take at its bandwidth / how long they
/// take. Absent without rows.
std::optional<double> FabricRatio(const std::vector<FabricRow>& rows);

struct FabricComparison {
  static constexpr std::string_view kPass = "fabric";

  std::vector<FabricRow> rows;  ///< Longest transfers first.
  model::Fabric source;         ///< What they were held against.
};

/// Adds the table to what Analyze computed.
void AddFabric(const model::Fabric& fabric, AnalysisResult* result);

}  // namespace lockstep::analysis
