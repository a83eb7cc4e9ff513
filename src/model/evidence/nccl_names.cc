#include <algorithm>
#include <array>
#include <string_view>

#include "model/evidence/nccl_job.h"
#include "model/evidence/nccl_state.h"

namespace lockstep::evidence {

const char* NcclTransportName(NcclTransport transport) {
  switch (transport) {
    case NcclTransport::kP2p: return "p2p";
    case NcclTransport::kSharedMemory: return "shared_memory";
    case NcclTransport::kNetwork: return "network";
    case NcclTransport::kCollNet: return "collnet";
    case NcclTransport::kOther: break;
  }
  return "other";
}

bool IsTransportError(const NcclLogFinding& finding) {
  constexpr std::array<std::string_view, 11> kKinds = {
      "ib_completion", "ib_event",     "ib_device_failed",      "ib_route", "ib_memory", "ib_call",
      "socket_closed", "socket_reset", "socket_connect_failed", "ofi",      "bootstrap"};
  return finding.severity == "error" && std::find(kKinds.begin(), kKinds.end(), finding.kind) != kKinds.end();
}

}  // namespace lockstep::evidence
