#include "analysis/hang/diagnosis.h"

namespace lockstep::hang {

const char* VerdictKindName(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kSkippedCollective: return "skipped_collective";
    case VerdictKind::kExtraCollective: return "extra_collective";
    case VerdictKind::kWrongOrder: return "wrong_order";
    case VerdictKind::kOperationMismatch: return "operation_mismatch";
    case VerdictKind::kSizeMismatch: return "size_mismatch";
    case VerdictKind::kDtypeMismatch: return "dtype_mismatch";
    case VerdictKind::kStuckOutsideCollective: return "stuck_outside_collective";
    case VerdictKind::kDeviceStalled: return "device_stalled";
    case VerdictKind::kCrash: return "crash";
    case VerdictKind::kPeerUnreachable: return "peer_unreachable";
    case VerdictKind::kDeadlock: return "deadlock";
    case VerdictKind::kUnmatchedP2p: return "unmatched_p2p";
    case VerdictKind::kStraggler: return "straggler";
    case VerdictKind::kHealthy: return "healthy";
    case VerdictKind::kUndecidable: return "undecidable";
  }
  return "undecidable";
}

const char* RankRoleName(RankRole role) {
  switch (role) {
    case RankRole::kCulprit: return "culprit";
    case RankRole::kVictim: return "victim";
    case RankRole::kUninvolved: return "uninvolved";
    case RankRole::kUnknown: return "unknown";
  }
  return "unknown";
}

}  // namespace lockstep::hang
