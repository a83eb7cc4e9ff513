#include "analysis/job_graph/sync_call.h"

namespace lockstep::analysis {

SyncCall SyncCallOf(std::string_view name) {
  for (const std::string_view prefix : {"cuda", "hip", "cu"}) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view call = name.substr(prefix.size());
    if (call == "DeviceSynchronize" || call == "CtxSynchronize") return SyncCall::kDevice;
    if (call == "StreamSynchronize") return SyncCall::kStream;
    if (call == "EventSynchronize") return SyncCall::kEvent;
    if (call == "Memcpy" || call == "MemcpyAsync" || call == "MemcpyWithStream") return SyncCall::kCopy;
  }
  return SyncCall::kNone;
}

}  // namespace lockstep::analysis
