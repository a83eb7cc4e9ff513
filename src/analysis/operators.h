#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/rank_context.h"
#include "base/ids.h"

namespace lockstep::analysis {

/// Operators (and user annotations) of one name on one rank, as PyTorch's key_averages() and tb_plugin count them.
/// cpu_self: time in the range less its direct children on the same thread, ranges and calls of the device runtime;
/// cpu_total: whole range, counting nested calls of the same name once for every call. device_self: durations of device
/// events whose launch call's innermost enclosing range (same thread) is this one; device_total: device_self of the
/// range and everything nested in it.
struct OperatorRow {
  size_t rank_index = 0;
  NameId name;
  uint64_t count = 0;
  int64_t cpu_self_ns = 0;
  int64_t cpu_total_ns = 0;
  int64_t device_self_ns = 0;
  int64_t device_total_ns = 0;
};

struct Operators {
  static constexpr std::string_view kPass = "operators";

  std::vector<OperatorRow> rows;  ///< By rank.
};

/// Rows of a rank, largest device_self first, then cpu_self, then name.
void ComputeOperators(const RankContext& context, std::vector<OperatorRow>* rows);

}  // namespace lockstep::analysis
