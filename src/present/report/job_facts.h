#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/run.h"

namespace lockstep::report {

/// Device that a rank's own events ran on: its name where deviceProperties has it. Ordinal absent without device
/// events.
struct RankDevice {
  std::string name;  ///< Empty when unknown.
  std::vector<int32_t> ordinals;
};
RankDevice DeviceOf(const model::RankTrace& trace);

/// Facts of the job that are spread over its ranks.
struct JobFacts {
  size_t rank_count = 0;                    ///< Distinct ranks.
  size_t window_count = 0;                  ///< Distinct windows.
  std::vector<std::string> hosts;           ///< Distinct, sorted; unknown hosts are left out.
  std::optional<int32_t> world_size = {};   ///< Largest that any file states.
  std::vector<int32_t> missing_ranks = {};  ///< Below world_size and without a file; at most the first 1,000.
  size_t missing_rank_count = 0;
  uint64_t event_count = 0;
  std::string backend;  ///< Of the first rank that states one, or empty.
  std::string devices;  ///< Of the first window's ranks: "4 x NVIDIA H100, 2 x unnamed device"; empty: none was used.
};
JobFacts FactsOf(const model::Run& run);

}  // namespace lockstep::report
