#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::hang {

enum class OperationKind : uint8_t {
  kOther,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kBarrier,
  kCoalesced,
  kSend,
  kRecv,
};

/// A profiling_name taken apart: "nccl:send 0->3" is a send of group rank 0 to group rank 3.
struct Operation {
  OperationKind kind = OperationKind::kOther;
  std::string_view backend;  ///< "nccl", "gloo", "c10d", ...; empty where the name has no prefix.
  std::string_view name;     ///< Without prefix and ranks: "all_reduce", "_all_gather_base", "send".
  int32_t own = -1;          ///< Group rank of the caller of send and recv, -1 = not told.
  int32_t peer = -1;         ///< Group rank of the other side.
};

/// The views point into `profiling_name`.
Operation ReadOperation(std::string_view profiling_name);
/// The usual name: "_all_gather_base" is "all_gather", "allreduce" is "all_reduce"; unknown names stay.
std::string_view PlainName(const Operation& operation);

/// Device backends record that an operation is complete when the device has run it; other backends do not.
bool CompletesOnDevice(std::string_view backend);
/// No member can complete it before every member has entered it.
bool NeedsAll(OperationKind kind);
/// Written by the recorder's hook beside the backend's own entry: a duplicate where there are native ones.
inline bool IsHookBackend(std::string_view backend) { return backend == "c10d"; }

}  // namespace lockstep::hang
