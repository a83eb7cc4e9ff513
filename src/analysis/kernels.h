#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/kernel_kind.h"
#include "analysis/rank_context.h"
#include "base/ids.h"

namespace lockstep::analysis {

/// Device events of one name on one rank. Durations of single events are summed, so overlapping events count twice.
struct KernelRow {
  size_t rank_index = 0;
  NameId name;
  KernelKind kind = KernelKind::kCompute;
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  double mean_ns = 0;
  double stddev_ns = 0;  ///< Sample standard deviation (n - 1); 0 for one event.
};

struct Kernels {
  static constexpr std::string_view kPass = "kernels";

  std::vector<KernelRow> rows;  ///< By rank, largest total first.
};

/// Rows of a rank, largest total first, then by name.
void ComputeKernels(const RankContext& context, std::vector<KernelRow>* rows);

}  // namespace lockstep::analysis
