#include "analysis/hang/operation.h"

#include <array>
#include <charconv>

namespace lockstep::hang {
namespace {

struct Name {
  std::string_view name;
  OperationKind kind;
};
/// First of each kind: its plain name.
constexpr std::array<Name, 37> kNames = {{
    {"all_reduce", OperationKind::kAllReduce},
    {"allreduce", OperationKind::kAllReduce},
    {"allreduce_coalesced", OperationKind::kAllReduce},
    {"all_reduce_coalesced", OperationKind::kAllReduce},
    {"all_reduce_sparse", OperationKind::kAllReduce},
    {"all_gather", OperationKind::kAllGather},
    {"allgather", OperationKind::kAllGather},
    {"_all_gather_base", OperationKind::kAllGather},
    {"_allgather_base", OperationKind::kAllGather},
    {"all_gather_into_tensor", OperationKind::kAllGather},
    {"all_gather_into_tensor_coalesced", OperationKind::kAllGather},
    {"allgather_into_tensor_coalesced", OperationKind::kAllGather},
    {"reduce_scatter", OperationKind::kReduceScatter},
    {"_reduce_scatter_base", OperationKind::kReduceScatter},
    {"reduce_scatter_tensor", OperationKind::kReduceScatter},
    {"reduce_scatter_tensor_coalesced", OperationKind::kReduceScatter},
    {"all_to_all", OperationKind::kAllToAll},
    {"alltoall", OperationKind::kAllToAll},
    {"alltoall_base", OperationKind::kAllToAll},
    {"all_to_all_base", OperationKind::kAllToAll},
    {"all_to_all_single", OperationKind::kAllToAll},
    {"broadcast", OperationKind::kBroadcast},
    {"_broadcast_oop", OperationKind::kBroadcast},
    {"broadcast_coalesced", OperationKind::kBroadcast},
    {"reduce", OperationKind::kReduce},
    {"_reduce_oop", OperationKind::kReduce},
    {"gather", OperationKind::kGather},
    {"scatter", OperationKind::kScatter},
    {"barrier", OperationKind::kBarrier},
    {"all_reduce_barrier", OperationKind::kBarrier},
    {"allreduce_barrier", OperationKind::kBarrier},
    {"monitored_barrier", OperationKind::kBarrier},
    {"coalesced", OperationKind::kCoalesced},
    {"send", OperationKind::kSend},
    {"recv", OperationKind::kRecv},
    {"recv_any_source", OperationKind::kRecv},
    {"recvAnySource", OperationKind::kRecv},
}};

/// "0->3" or "3<-0": own rank first in both.
void ReadRanks(std::string_view text, Operation& operation) {
  const size_t arrow = std::min(text.find("->"), text.find("<-"));
  if (arrow == std::string_view::npos) {
    return;
  }
  int32_t own = -1;
  int32_t peer = -1;
  const auto first = std::from_chars(text.data(), text.data() + arrow, own);
  const auto second = std::from_chars(text.data() + arrow + 2, text.data() + text.size(), peer);
  if (first.ec == std::errc() && second.ec == std::errc() && own >= 0 && peer >= 0) {
    operation.own = own;
    operation.peer = peer;
  }
}

}  // namespace

Operation ReadOperation(std::string_view profiling_name) {
  Operation operation;
  const size_t colon = profiling_name.find(':');
  std::string_view rest = profiling_name;
  if (colon != std::string_view::npos) {
    operation.backend = profiling_name.substr(0, colon);
    rest = profiling_name.substr(colon + 1);
  }
  const size_t blank = rest.find(' ');
  operation.name = rest.substr(0, blank);
  for (const Name& known : kNames) {
    if (known.name == operation.name) {
      operation.kind = known.kind;
      break;
    }
  }
  const bool is_p2p = operation.kind == OperationKind::kSend || operation.kind == OperationKind::kRecv;
  if (is_p2p && blank != std::string_view::npos) {
    ReadRanks(rest.substr(blank + 1), operation);
  }
  return operation;
}

std::string_view PlainName(const Operation& operation) {
  if (operation.kind == OperationKind::kOther) {
    return operation.name;
  }
  for (const Name& known : kNames) {
    if (known.kind == operation.kind) {
      return known.name;
    }
  }
  return operation.name;
}

bool CompletesOnDevice(std::string_view backend) {
  return backend == "nccl" || backend == "ncclx" || backend == "rccl" || backend == "rcclx" || backend == "xccl" ||
         backend == "mccl" || backend == "hccl";
}

bool NeedsAll(OperationKind kind) {
  switch (kind) {
    case OperationKind::kAllReduce:
    case OperationKind::kAllGather:
    case OperationKind::kReduceScatter:
    case OperationKind::kAllToAll:
    case OperationKind::kBarrier: return true;
    default: return false;
  }
}

}  // namespace lockstep::hang
