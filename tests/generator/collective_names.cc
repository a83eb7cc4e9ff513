#include "generator/collective_names.h"

namespace lockstep::tracegen {
namespace {

constexpr CollectiveNames kNames[] = {
    {"allreduce", "c10d::allreduce_", "nccl:all_reduce", "gloo:all_reduce",
     "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"},
    {"_allgather_base", "c10d::_allgather_base_", "nccl:_all_gather_base", "gloo:all_gather",
     "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_gather"},
    {"_reduce_scatter_base", "c10d::_reduce_scatter_base_", "nccl:_reduce_scatter_base", "gloo:reduce_scatter",
     "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce_scatter"},
    {"send", "c10d::send", "nccl:send", "gloo:send", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
     "send_recv"},
    {"recv", "c10d::recv_", "nccl:recv", "gloo:recv", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
     "send_recv"},
};

}  // namespace

const CollectiveNames& NamesOf(std::string_view collective) {
  for (const CollectiveNames& names : kNames) {
    if (collective == names.collective) return names;
  }
  return kNames[0];
}

}  // namespace lockstep::tracegen
