#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "analysis/wait_states/wait_states.h"

namespace lockstep::analysis {

/// Waiting by whose doing it was, what that was, and when: a step, or where the recording has fewer than two a share of
/// its collectives.
struct WaitTable {
  std::vector<int32_t> windows;  ///< By rank index: its window; -1: it had no part in anything that is waited in.
  size_t round_count = 0;        ///< Of steps or shares.
  double floor_ns = 0;           ///< Less than this of a round is not told from nothing.
  double unrecorded_ns = 0;      ///< Waiting for unrecorded ranks, which cannot be named.
  /// By (rank index, cause), then by round; only where there is any.
  std::map<std::pair<size_t, RootCause>, std::map<size_t, double>> wait_ns;
};

/// The ranks and links that cause more waiting than chance explains, most waiting first. In: causes with their waiting,
/// all the job's waiting. Cost: O(table) for each of the few that are behind a twentieth of the waiting. Source:
/// docs/metrics.md#who-is-named.
std::vector<WaitCulprit> FindCulprits(const WaitTable& table, const std::vector<RootCauseRow>& causes, int64_t wait_ns);

}  // namespace lockstep::analysis
