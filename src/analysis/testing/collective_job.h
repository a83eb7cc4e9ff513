#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/alignment.h"
#include "analysis/collectives.h"
#include "analysis/kernel_kind.h"
#include "analysis/rank_context.h"
#include "analysis/testing/trace_builder.h"

namespace lockstep::analysis::testing {

/// One rank's NCCL kernel and what its args say. Times are the rank's own clock.
struct PlannedCall {
  int32_t rank = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::string name = "allreduce";
  int64_t elements = 1000;
  std::string group = {};  ///< Empty: no metadata at all.
  std::string group_ranks = {};
  std::optional<int64_t> sequence = {};
  std::optional<int32_t> peer = {};  ///< Of send and recv.
  int64_t stream = 20;
  std::optional<int64_t> out_elements = {};  ///< Absent: as many as `elements`.
};

/// Kernel name of a collective, as NCCL writes it.
inline std::string KernelName(const std::string& collective) {
  if (collective == "allreduce") return "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
  if (collective == "_allgather_base") return "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
  if (collective == "broadcast") return "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
  return "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
}

/// `correlation`: of the call that launches it, which the test adds itself.
inline void AddCall(RunBuilder& job, const PlannedCall& call, uint32_t correlation = 0) {
  RankBuilder& rank = job.Rank(call.rank);
  rank.Kernel(call.stream, KernelName(call.name), call.start_ns, call.end_ns - call.start_ns, correlation);
  if (call.group.empty()) return;
  model::CollectiveRecord record;
  record.source = model::CollectiveRecord::Source::kKernel;
  record.start_ns = call.start_ns;
  record.duration_ns = call.end_ns - call.start_ns;
  record.thread_id = call.stream;
  record.event_name = rank.Name(KernelName(call.name));
  record.collective_name = rank.Name(call.name);
  record.dtype = rank.Name("Float");
  record.group_name = rank.Name(call.group);
  record.group_ranks = rank.Name(call.group_ranks);
  record.in_elements = call.elements;
  record.out_elements = call.out_elements.value_or(call.elements);
  record.sequence = call.sequence;
  if (call.name == "send") record.destination_rank = call.peer;
  if (call.name == "recv") record.source_rank = call.peer;
  rank.Collective(record);
}

/// A run with what every cross-rank pass needs.
struct Job {
  explicit Job(model::Run&& built) : run(std::move(built)) {
    shared.run = &run;
    shared.is_communication = ClassifyCommunication(run);
  }
  Collectives Match() const { return MatchCollectives(shared); }
  /// Matches, aligns and times.
  Collectives Time() {
    Collectives collectives = Match();
    AlignClocks(collectives, &run);
    TimeCollectives(run, &collectives);
    return collectives;
  }

  model::Run run;
  RunContext shared;
};

}  // namespace lockstep::analysis::testing
