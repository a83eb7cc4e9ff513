#include "evidence/nccl_job.h"

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

}  // namespace lockstep::evidence
