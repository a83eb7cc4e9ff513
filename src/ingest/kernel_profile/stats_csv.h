#pragma once

#include <optional>
#include <string_view>

#include "model/kernel_profile.h"

namespace lockstep::ingest {

/// Whether the text holds one of the tables of `nsys stats` that sum times up by name, as CSV or TSV: kernels, calls of
/// CUDA, of the operating system and of MPI, memory operations by time, NVTX ranges.
bool LooksLikeStatsSum(std::string_view text);

/// Adds its rows to `profiles`. The unit of times is read from the header. Older names of columns are known. Ledger:
/// "stats_rows_skipped" (rows without a name, a count or a total).
void ReadStatsSum(std::string_view text, std::string_view file, std::optional<int32_t> rank,
                  model::KernelProfiles* profiles);

}  // namespace lockstep::ingest
