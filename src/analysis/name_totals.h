#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/kernels.h"
#include "analysis/operators.h"
#include "model/name_table.h"

namespace lockstep::analysis {

/// How a name's total is spread over the ranks that have it. Quantiles: docs/metrics.md#name-totals.
struct RankSpread {
  std::vector<std::pair<size_t, int64_t>> by_rank;  ///< (rank index, total), by rank index.
  std::array<double, 5> quantiles_ns = {};          ///< Minimum, quartiles, maximum of the totals.
  size_t min_rank_index = 0;                        ///< The first of those with the smallest total.
  size_t max_rank_index = 0;
};

/// Device events of one name and kind over all ranks.
struct KernelTotals {
  NameId name;
  KernelKind kind = KernelKind::kCompute;
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  RankSpread spread;  ///< Of total_ns.
  double mean_ns() const { return static_cast<double>(total_ns) / static_cast<double>(count); }
};

/// An operator over all ranks.
struct OperatorTotals {
  NameId name;
  uint64_t count = 0;
  int64_t cpu_self_ns = 0;
  int64_t cpu_total_ns = 0;
  int64_t device_self_ns = 0;
  int64_t device_total_ns = 0;
  /// Of device_self_ns where any rank has time on a device in this operator, else of cpu_self_ns.
  RankSpread spread;
};

/// Rows of all ranks put together by (name, kind), largest total first, then by name. Cost: O(rows log rows).
std::vector<KernelTotals> TotalKernels(const std::vector<KernelRow>& rows, const model::NameTable& names);

/// By name; largest device_self first, then cpu_self, then name.
std::vector<OperatorTotals> TotalOperators(const std::vector<OperatorRow>& rows, const model::NameTable& names);

}  // namespace lockstep::analysis
