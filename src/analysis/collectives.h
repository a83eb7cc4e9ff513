#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/rank_context.h"
#include "base/ids.h"

namespace lockstep::analysis {

/// How the instances of a collective were joined across ranks, in order of trust.
enum class MatchBasis : uint8_t { kSequence, kOrder };
const char* MatchBasisName(MatchBasis basis);

/// One rank's part in a collective instance. Times are RunNs (aligned clock) unless named otherwise.
struct CollectiveMember {
  size_t rank_index = 0;
  int64_t arrival_ns = 0;          ///< Start of the rank's kernel (CPU jobs: of its collective range).
  int64_t end_ns = 0;
  std::optional<int64_t> wait_ns;  ///< Last arrival - own arrival; absent when a member's window lacks it.
  int64_t trace_start_ns = 0;      ///< The same start on the rank's own clock.
};

/// One collective instance, all ranks. Source: docs/metrics.md#collectives.
struct CollectiveInstance {
  int32_t window = 0;
  std::string group;                      ///< Process group name, description or member list; "default" when unknown.
  int64_t sequence = 0;                   ///< "Seq" where recorded, else the order in the group from 0.
  MatchBasis basis = MatchBasis::kOrder;
  std::string name;                       ///< all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, send, recv, ...
  std::optional<int64_t> bytes;           ///< Size in nccl-tests' convention (whole buffer); absent when not recorded.
  std::vector<CollectiveMember> members;  ///< By rank.
  std::vector<Rank> missing_ranks;        ///< Members whose window lacks it.
  bool complete = false;                  ///< Every member of the group is here.
  std::optional<int64_t> transfer_ns;     ///< Last end - last arrival; absent unless complete.
  std::optional<double> algbw_bytes_per_s;
  std::optional<double> busbw_bytes_per_s;
  std::optional<size_t> last_rank_index;  ///< The late one; absent when the margin is below the clocks' uncertainty.
};

struct Collectives {
  std::vector<CollectiveInstance> instances;   ///< By (window, first arrival, group, sequence).
};

/// Joins collectives across ranks. Works on trace clocks alone (order and sequence, never time), so it can feed alignment.
Collectives MatchCollectives(const RunContext& shared);

/// Fills arrival, wait, transfer and bandwidth from the ranks' clock maps.
void TimeCollectives(const model::Run& run, Collectives* collectives);

}  // namespace lockstep::analysis
