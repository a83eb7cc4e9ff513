#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::analysis {

/// What a collective does, whatever the backend or producer calls it.
enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBarrier,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kSend,
  kReceive,
  kSendReceive,  ///< A kernel that sends and receives, when nothing says for which operation.
  kOther,
};

/// The name that is printed: "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier", "broadcast",
/// "reduce", "gather", "scatter", "send", "recv", "send_recv", "other".
const char* CollectiveKindName(CollectiveKind kind);

/// From any spelling: "allreduce", "nccl:all_reduce", "_allgather_base", "all_to_allv", "c10d::alltoall_base_",
/// "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(...)". kOther when no operation is named.
CollectiveKind ClassifyCollective(std::string_view name);

/// True if no member can finish before every member has arrived, so that ends are tie points of the members' clocks:
/// all_reduce, all_gather, reduce_scatter, all_to_all, barrier.
bool IsSynchronising(CollectiveKind kind);

}  // namespace lockstep::analysis
