#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/rank_context.h"
#include "model/run.h"

namespace lockstep::analysis {

/// The ranges of one name that a rank's program marks: record_function, NVTX. Of ranges inside one of the same name on
/// the same thread the outer one counts. Source: docs/metrics.md#regions.
struct RegionRow {
  size_t rank_index = 0;
  std::string name;  ///< "step 12" is "step *".
  uint64_t count = 0;
  int64_t total_ns = 0;  ///< On the CPU.
  int64_t min_ns = 0;
  int64_t median_ns = 0;
  int64_t p95_ns = 0;
  int64_t max_ns = 0;
  /// Of total_ns, no collective of a CPU backend or of MPI is under way on the rank: what is left when waiting inside a
  /// range is taken out. Absent with device events, where a range does not wait for its collectives.
  std::optional<int64_t> own_ns;
  std::optional<int64_t> pace_ns;  ///< Median distance between one's start and the next one's; of two and more.
  uint64_t device_event_count = 0;
  std::optional<int64_t> device_ns;  ///< Sum of the device events launched inside; absent without any device.
  std::optional<int64_t> device_communication_ns;  ///< Of it, communication kernels.
  std::optional<int64_t> projected_ns;  ///< Sum of first start to last end of the device events launched in a range.
};

/// One name over all ranks that have it.
struct RegionBalanceRow {
  std::string name;
  uint64_t rank_count = 0;
  uint64_t count = 0;         ///< Over all of them.
  int64_t mean_total_ns = 0;  ///< Of a rank.
  size_t most_total_rank_index = 0;
  double total_imbalance = 1;  ///< Largest over mean.
  std::optional<int64_t> mean_own_ns;
  std::optional<size_t> most_own_rank_index;
  std::optional<double> own_imbalance;
  std::optional<int64_t> mean_device_ns;
  std::optional<size_t> most_device_rank_index;
  std::optional<double> device_imbalance;  ///< Of device time without communication, which waits for others.
};

struct Regions {
  static constexpr std::string_view kPass = "regions";

  std::vector<RegionRow> rows;            ///< By rank, largest total first.
  std::vector<RegionBalanceRow> balance;  ///< Largest mean first.
};

/// One rank's regions, the largest total first. Cost: O(annotations log annotations + device events x depth of ranges).
std::vector<RegionRow> MapRegions(const RankContext& context);

/// Over the ranks of the first window, the largest mean first.
std::vector<RegionBalanceRow> BalanceRegions(const model::Run& run, const std::vector<RegionRow>& rows);

/// A region's name without what numbers the steps: "step 12" is "step *", "iteration_7" "iteration_*"; "layer3" stays.
std::string RegionName(std::string_view range);

}  // namespace lockstep::analysis
