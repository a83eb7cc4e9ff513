// Tables of ncu and nsys stats: numbers within their bounds, every ledger row has a text, and all of it can be shown.
#include <cmath>
#include <string>
#include <string_view>

#include "analysis/kernel_profile/kernel_bounds.h"
#include "fuzz.h"
#include "ingest/kernel_profile/ncu_csv.h"
#include "ingest/kernel_profile/stats_csv.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  model::KernelProfiles profiles;
  if (ingest::LooksLikeNcuCsv(text)) ingest::ReadNcuCsv(text, "rank1.csv", 1, &profiles);
  if (ingest::LooksLikeStatsSum(text)) ingest::ReadStatsSum(text, "a_nvtx_sum.csv", {}, &profiles);
  FUZZ_CHECK(profiles.launches.size() + profiles.sums.size() <= size);
  for (const model::KernelLaunch& launch : profiles.launches) {
    FUZZ_CHECK(launch.duration_ns.value_or(0) >= 0);
    for (const analysis::RooflinePoint& point : analysis::RooflineOf(launch)) {
      FUZZ_CHECK(point.flops_per_s > 0 && point.roof_flops_per_s > 0 && std::isfinite(point.roof_ratio));
    }
    analysis::BoundOf(launch);
  }
  for (const analysis::NameOverRanks& row : analysis::SumOverRanks(profiles)) {
    FUZZ_CHECK(row.total_ns >= 0 && row.report_count == 1 && !row.imbalance);
  }
  for (const model::LedgerEntry& entry : profiles.ledger.entries()) {
    FUZZ_CHECK(!entry.code.empty() && !entry.message.empty() && !entry.advice.empty());
  }
  return 0;
}
