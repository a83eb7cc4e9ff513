#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/collective_kind.h"
#include "analysis/parallelism/backward_phases.h"
#include "analysis/rank_context.h"

namespace lockstep::analysis {

/// A process group as one rank's trace tells of it.
struct TrafficGroup {
  std::string name;                   ///< "Process Group Name"; empty without metadata.
  std::string description;            ///< Of the calls, else of distributedInfo's pg_config; empty when neither has it.
  std::string backend;                ///< Of pg_config; may be empty.
  std::vector<int32_t> members = {};  ///< Global ranks, sorted; empty when the trace does not list them.
  std::optional<int32_t> size = {};   ///< Members, with or without a trace.
  std::optional<uint64_t> communicator_id = {};
  bool on_device = true;
  int64_t communication_ns = 0;  ///< |union of its calls|
  int64_t exposed_ns = 0;        ///< |union of its calls \ compute|
};

/// One collective call of a rank, with what the passes about parallelism need of it. Trace clock.
struct TrafficCall {
  uint32_t group = 0;  ///< Into RankTraffic::groups.
  CollectiveKind kind = CollectiveKind::kOther;
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int64_t exposed_ns = 0;                 ///< Part of it in which the rank computes nothing.
  std::optional<int64_t> bytes = {};      ///< CollectiveBytes: whole buffer.
  std::optional<int64_t> in_bytes = {};   ///< What this rank puts in; differs by rank in all_to_all.
  std::optional<int64_t> out_bytes = {};  ///< What this rank gets.
  std::optional<int64_t> issue_ns = {};   ///< Where the CPU issued it.
  std::optional<int64_t> step = {};       ///< Number of the step in which it was issued.
  uint32_t phase = UINT32_MAX;            ///< Backward phase in which it was issued; UINT32_MAX = none.
  std::optional<int32_t> peer = {};       ///< Of sends and receives.

  int64_t end_ns() const { return start_ns + duration_ns; }
  bool in_backward() const { return phase != UINT32_MAX; }
};

/// The communication of one rank: what the passes `groups`, `ddp`, `fsdp`, `pipeline` and `moe` are drawn from, without
/// the rank's events. Plain values, so that it can be sent.
struct RankTraffic {
  size_t rank_index = 0;
  std::vector<TrafficGroup> groups;             ///< In order of first call.
  std::vector<TrafficCall> calls;               ///< By issue (device start where no issue is known).
  std::vector<BackwardPhase> phases;            ///< In order of time.
  std::vector<Interval> steps;                  ///< Step windows, trace clock; empty without steps.
  std::vector<int64_t> step_numbers;            ///< Parallel to `steps`.
  std::optional<int64_t> peak_allocated_bytes;  ///< Largest of a device's allocator; absent without memory events.
  std::optional<int64_t> peak_reserved_bytes;
  int64_t span_ns = 0;             ///< First to last event of the devices; of the CPU without a device.
  std::optional<bool> on_device;   ///< Absent when the rank has neither kernels nor operators.
  bool has_cpu_operators = false;  ///< Its trace has CPU operators, so that a backward pass would be seen.
};

/// Traffic of all ranks, by rank index.
struct Traffic {
  static constexpr std::string_view kPass = "traffic";

  std::vector<RankTraffic> ranks;
};

/// Reads one rank's events. Cost: O(events), with one sort of the calls.
RankTraffic MapTraffic(const RankContext& context);

}  // namespace lockstep::analysis
