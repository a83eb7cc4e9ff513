#include "model/evidence/job_evidence.h"
#include "model/evidence/log_event.h"

namespace lockstep::evidence {

const char* LogEventKindName(LogEventKind kind) {
  switch (kind) {
    case LogEventKind::kException: return "exception";
    case LogEventKind::kWatchdogTimeout: return "watchdog_timeout";
    case LogEventKind::kWatchdogStatus: return "watchdog_status";
    case LogEventKind::kWatchdogStuck: return "watchdog_stuck";
    case LogEventKind::kDesyncReport: return "desync_report";
    case LogEventKind::kPeerClosed: return "peer_closed";
    case LogEventKind::kPeerReset: return "peer_reset";
    case LogEventKind::kTransportTimeout: return "transport_timeout";
    case LogEventKind::kSizeMismatch: return "size_mismatch";
    case LogEventKind::kCollectiveMismatch: return "collective_mismatch";
    case LogEventKind::kMonitoredBarrier: return "monitored_barrier";
    case LogEventKind::kStoreTimeout: return "store_timeout";
    case LogEventKind::kOutOfMemory: return "out_of_memory";
    case LogEventKind::kSignal: return "signal";
    case LogEventKind::kNcclError: return "nccl_error";
    case LogEventKind::kDeviceError: return "device_error";
    case LogEventKind::kOtherError: return "other_error";
  }
  return "other_error";
}

const char* LivenessName(Liveness liveness) {
  switch (liveness) {
    case Liveness::kUnknown: return "unknown";
    case Liveness::kRunning: return "running";
    case Liveness::kGone: return "gone";
  }
  return "unknown";
}

}  // namespace lockstep::evidence
