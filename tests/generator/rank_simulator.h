#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generator/job_log.h"
#include "generator/layer_program.h"
#include "generator/trace_spec.h"

namespace lockstep::tracegen {

inline constexpr uint8_t kMainThread = 0;
inline constexpr uint8_t kAutogradThread = 1;
inline constexpr uint8_t kCollectiveThread = 2;  ///< CPU-only jobs: where Gloo's ranges are.
inline constexpr uint8_t kComputeStream = 7;

/// A collective's kernel that was launched and whose times are not known yet.
struct PendingCollective {
  uint32_t collective = 0;  ///< Index into JobLog::collectives.
  size_t event = 0;         ///< Row of RankLog::device (CPU-only: of RankLog::cpu).
  int64_t ready_ns = 0;     ///< Launched, and its input is there.
  bool blocks_compute = false;
};

/// One rank's host threads and device streams.
class RankSimulator {
 public:
  RankSimulator(const TraceSpec& spec, int32_t rank, JobLog* job);

  size_t Open(uint8_t lane, EventKind kind, uint32_t name);
  void Close(size_t row, uint8_t lane);
  void Spend(uint8_t lane, int64_t duration_ns) { host_ns_[lane] += duration_ns; }
  /// Runs an operator with its views and kernels. `extra_ns` is added to every kernel.
  void Run(uint8_t lane, const OpSpec& op, int64_t extra_ns, bool backward);
  void Copy(uint8_t lane, uint32_t name, uint32_t call, int64_t duration_ns);
  void Set(uint8_t lane, uint32_t name, uint32_t call, int64_t duration_ns);
  /// A runtime call with no device event.
  void Call(uint8_t lane, uint32_t name, int64_t duration_ns);
  /// The host waits for the compute stream.
  void Synchronize(uint8_t lane, uint32_t name);
  PendingCollective Issue(uint8_t lane, uint32_t collective, uint8_t stream, bool waits_for_compute);
  /// Fills in a collective's kernel.
  void Complete(const PendingCollective& pending, int64_t arrival_ns, int64_t end_ns);
  void BeginStep(const std::string& name);
  void EndStep();

  int64_t host_ns(uint8_t lane) const { return host_ns_[lane]; }
  void set_host_ns(uint8_t lane, int64_t time_ns) { host_ns_[lane] = time_ns; }
  /// Compute may not start before this.
  void WaitUntil(int64_t time_ns);
  int64_t stream_free_ns(size_t slot) const { return stream_free_ns_[slot]; }
  void set_stream_free_ns(size_t slot, int64_t time_ns) { stream_free_ns_[slot] = time_ns; }
  /// The next kernel starts that much after it could.
  void DelayNextKernel(int64_t delay_ns) { kernel_delay_ns_ = delay_ns; }
  int64_t Random(int64_t below);

 private:
  double LogNormal(double sigma);  ///< Of median 1.
  void Launch(uint8_t lane, const KernelSpec& kernel, int64_t extra_ns);
  void DeviceWork(uint8_t lane, EventKind kind, uint32_t name, uint32_t call, int64_t duration_ns);
  void AllocateOutput(uint8_t lane);
  LogEvent* AddCpu(uint8_t lane, EventKind kind, uint32_t name);

  const TraceSpec& spec_;
  const int32_t rank_;
  RankLog* log_;
  JobLog* job_;
  uint64_t random_;
  int64_t host_ns_[3];
  int64_t compute_free_ns_;
  int64_t stream_free_ns_[3] = {0, 0, 0};
  uint32_t next_external_ = 1;
  uint32_t next_correlation_;
  uint32_t next_sequence_ = 1;
  uint32_t next_flow_ = 1;
  uint32_t current_external_ = 0;
  std::vector<std::pair<uint32_t, uint32_t>>
      forward_marks_;  ///< (flow, sequence) of operators awaiting their backward.
  int64_t kernel_delay_ns_ = 0;
  double step_factor_ = 1;  ///< On all kernels of the step.
  size_t step_row_ = 0;
  size_t step_device_begin_ = 0;
  int64_t allocated_ = 1 << 28;
  uint64_t next_address_ = 0x7f2a40000000;
  uint32_t launch_;
  uint32_t launch_ex_;
  uint32_t event_record_;
  uint32_t wait_event_;
  uint32_t memory_;
  uint32_t params_;
};

}  // namespace lockstep::tracegen
