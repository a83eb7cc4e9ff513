#include "ingest/nccl_trace/ring_quality.h"

#include <fmt/format.h>

#include <utility>

namespace lockstep::ingest {
namespace {

using model::Severity;

/// Of NCCL's interface: the first with events of kernels, and the first with their time by the device.
constexpr uint32_t kFirstWithKernels = 3;
constexpr uint32_t kFirstWithDeviceTime = 4;

class Reporter {
 public:
  Reporter(const NcclRing& ring, const std::string& source, model::Ledger* ledger)
      : ring_(ring), source_(source), ledger_(*ledger) {}

  void Report() {
    Row("nccl_operations_only", Severity::kInfo, 1,
        "contains NCCL's operations and their calls, not what the device computed meanwhile",
        "add a profiler's trace of the rank for that");
    ReportUnderWay();
    ReportInterface();
    ReportLost();
  }

 private:
  void Row(const char* code, Severity severity, uint64_t count, std::string message, std::string advice) {
    model::LedgerEntry entry;
    entry.code = code;
    entry.severity = severity;
    entry.source = source_;
    entry.count = count;
    entry.message = std::move(message);
    entry.advice = std::move(advice);
    ledger_.Add(std::move(entry));
  }

  std::string Describe(const NcclRingOperation& operation) const {
    const NcclRingCommunicator& communicator = ring_.communicators[operation.communicator];
    std::string text = fmt::format("{} #{} of {}", TorchOperation(operation.function), operation.order,
                                   CommunicatorLabel(communicator));
    if (!communicator.name.empty()) text += fmt::format(" ({})", communicator.name);
    text += fmt::format(", {} {}", operation.element_count, TorchType(operation.datatype));
    switch (operation.state) {
      case NcclRingState::kBegun: text += ", called and not yet enqueued"; break;
      case NcclRingState::kEnqueued: text += ", enqueued and not begun on the device"; break;
      case NcclRingState::kRunning: text += ", running"; break;
      case NcclRingState::kDone: break;
    }
    if (operation.is_p2p) return text + fmt::format(", with its rank {}", operation.root);
    switch (operation.waiting_for) {
      case NcclRingWait::kOwnDevice: return text + ", waiting for its own device";
      case NcclRingWait::kPeer: return text + fmt::format(", waiting for its rank {}", operation.waiting_peer);
      case NcclRingWait::kNetwork:
        return text + fmt::format(", waiting for the network to its rank {}", operation.waiting_peer);
      case NcclRingWait::kNothing: return text;
    }
    return text;
  }

  bool SaysEnds(const NcclRingOperation& operation) const {
    return ring_.interface_version >= kFirstWithKernels || operation.state != NcclRingState::kEnqueued;
  }

  void ReportUnderWay() {
    const NcclRingOperation* first = nullptr;
    uint64_t count = 0;
    uint64_t unknown = 0;
    for (const NcclRingOperation& operation : ring_.operations) {
      if (operation.state == NcclRingState::kDone) continue;
      if (!SaysEnds(operation)) {
        ++unknown;
        continue;
      }
      if (count++ == 0) first = &operation;
    }
    if (first != nullptr) {
      const std::string who = ring_.rank ? fmt::format("rank {}", *ring_.rank) : fmt::format("process {}", ring_.pid);
      std::string message = fmt::format("{}: {} operation{} had not ended when the file was read, first {}", who, count,
                                        count == 1 ? "" : "s", Describe(*first));
      Row("nccl_operations_under_way", Severity::kWarning, count, std::move(message),
          "their calls are shown without an end; lockstep hang says which rank holds them up");
    }
    if (unknown > 0) {
      Row("nccl_ends_unknown", Severity::kWarning, unknown,
          fmt::format("{} operations were enqueued and needed no proxy: this NCCL does not report when they ended",
                      unknown),
          "NCCL 2.26 and later report it");
    }
  }

  void ReportInterface() {
    if (ring_.interface_version < kFirstWithKernels) {
      Row("nccl_without_kernels", Severity::kWarning, 1,
          fmt::format(
              "version {} of NCCL's profiler interface has no kernels: operations last from their enqueueing to "
              "the end of the proxy's part, by the host's clock, which is longer",
              ring_.interface_version),
          "NCCL 2.27 and later report it by the device's clock");
    } else if (ring_.interface_version < kFirstWithDeviceTime) {
      Row("nccl_without_device_time", Severity::kInfo, 1,
          fmt::format("version {} of NCCL's profiler interface has no time by the device: begins and ends are the "
                      "times at which the host was notified",
                      ring_.interface_version),
          "NCCL 2.27 and later report it by the device's clock");
    }
    if (ring_.interface_version < kFirstWithDeviceTime) {
      Row("nccl_sizes_unknown", Severity::kInfo, ring_.communicators.size(),
          "this NCCL does not report how many ranks a communicator has; sizes of all_gather and reduce_scatter need it",
          "NCCL 2.27 and later report it");
    }
  }

  void ReportLost() {
    uint64_t begun = 0;
    for (const NcclRingCommunicator& communicator : ring_.communicators) {
      begun += communicator.collective_count + communicator.p2p_count;
    }
    // One that is just being written is missing as well, and has not given way.
    const uint64_t told = ring_.operations.size() + ring_.dropped_operation_count;
    if (begun > told && ring_.operation_count > ring_.operation_capacity) {
      const uint64_t lost = begun - told;
      Row("nccl_ring_wrapped", Severity::kInfo, lost,
          fmt::format("{} earlier operations were overwritten: the process kept its last {}", lost,
                      ring_.operation_capacity),
          "raise LOCKSTEP_NCCL_OPERATIONS to keep more");
    }
    if (ring_.dropped_count > 0) {
      Row("nccl_ring_dropped", Severity::kWarning, ring_.dropped_count,
          fmt::format("{} operations, communicators or steps of the proxy did not fit and are missing",
                      ring_.dropped_count),
          "raise LOCKSTEP_NCCL_OPERATIONS");
    }
  }

  const NcclRing& ring_;
  const std::string& source_;
  model::Ledger& ledger_;
};

}  // namespace

std::string CommunicatorLabel(const NcclRingCommunicator& communicator) {
  return fmt::format("communicator {:#x}", communicator.id);
}

void ReportRingQuality(const NcclRing& ring, const std::string& source, model::Ledger* ledger) {
  Reporter(ring, source, ledger).Report();
}

}  // namespace lockstep::ingest
