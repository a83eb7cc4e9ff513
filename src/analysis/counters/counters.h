#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/extremes_over_time.h"
#include "analysis/rank_context.h"
#include "model/run.h"

namespace lockstep::analysis {

/// One counter of one rank: a hardware metric of one of its devices, or what its program counts. Source:
/// docs/metrics.md#counters.
struct CounterRow {
  size_t rank_index = 0;
  std::optional<int32_t> device;  ///< Ordinal; absent: of the process or its host.
  std::string name;
  std::string unit;  ///< As the source writes it; empty when it does not.
  uint64_t sample_count = 0;
  double mean = 0;  ///< Over time: a value counts for as long as it held, the last one not at all.
  double min = 0;
  double median = 0;  ///< Of the samples.
  double p95 = 0;
  double max = 0;
};

/// One counter over all ranks and devices that have it.
struct CounterBalanceRow {
  std::string name;
  std::string unit;
  uint64_t series_count = 0;
  double mean = 0;  ///< Of the series' means.
  double lowest_mean = 0;
  size_t lowest_rank_index = 0;
  std::optional<int32_t> lowest_device;
  double highest_mean = 0;
  size_t highest_rank_index = 0;
  std::optional<int32_t> highest_device;
};

struct Counters {
  static constexpr std::string_view kPass = "counters";

  std::vector<CounterRow> rows;            ///< By rank, device, name.
  std::vector<CounterBalanceRow> balance;  ///< By name.
};

/// One rank's counters, by device and name. Cost: O(samples log samples).
std::vector<CounterRow> MapCounters(const RankContext& context);

/// A counter of a rank over time, in at most `point_count` (>= 1) points; a value holds until the next.
ExtremesOverTime<double> ReduceCounter(const model::RankTrace& trace, const model::CounterSeries& series,
                                       size_t point_count);

/// Over the first window, by name.
std::vector<CounterBalanceRow> BalanceCounters(const model::Run& run, const std::vector<CounterRow>& rows);

}  // namespace lockstep::analysis
