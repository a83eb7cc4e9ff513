#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::launch {

/// A kernel of an analysis, all launches of one function together, whatever their template arguments.
struct KernelTotal {
  std::string function;        ///< As ncu and nsys call it by default: without namespace, template and arguments.
  int64_t total_ns = 0;        ///< Over all ranks.
  int64_t count_per_rank = 0;  ///< Of the rank that launched it least often.
  std::map<int32_t, int64_t> ns_of_rank = {};  ///< By rank.
};

/// "vectorized_elementwise_kernel" of "void at::native::vectorized_elementwise_kernel<4, ...>(int, ...)".
std::string FunctionName(std::string_view demangled);

/// Whether a kernel waits for those of other devices. Replayed alone, it waits for ever.
bool WaitsForOtherRanks(std::string_view name);

/// The computing kernels of what `lockstep analyze --json` printed, without those that wait for other ranks; most time
/// first, then by name. Errors: kCorruptData (no such JSON), kFailedPrecondition (no computing kernels).
Result<std::vector<KernelTotal>> ReadKernelTotals(std::string_view json);

/// Of these as many as make up four fifths of the time, at most `most`.
std::vector<KernelTotal> Heaviest(const std::vector<KernelTotal>& kernels, size_t most);

/// ncu's --kernel-name for these functions, "regex:^(a|b)$". The number behind a name that a compiler counts up
/// ("triton_poi_fused_add_0") is any number: it differs between runs. Errors: kInvalidArgument for a kernel that waits
/// for other ranks, and for no name.
Result<std::string> KernelPattern(const std::vector<std::string>& functions);

}  // namespace lockstep::launch
