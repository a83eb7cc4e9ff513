#include "generator/rank_simulator.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "generator/collective_names.h"
#include "generator/job_simulator.h"

namespace lockstep::tracegen {
namespace {

uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

constexpr int64_t kMemoryBytes = 1 << 20;

int64_t Scaled(int64_t duration_ns, double factor) {
  return static_cast<int64_t>(static_cast<double>(duration_ns) * factor);
}

}  // namespace

RankSimulator::RankSimulator(const TraceSpec& spec, int32_t rank, JobLog* job)
    : spec_(spec),
      rank_(rank),
      log_(&job->ranks[static_cast<size_t>(rank)]),
      job_(job),
      random_(Mix(spec.seed * 1000003 + static_cast<uint64_t>(rank))),
      host_ns_{kJobStartNs, kJobStartNs, kJobStartNs},
      compute_free_ns_(kJobStartNs),
      next_correlation_(4000 + static_cast<uint32_t>(rank)) {
  launch_ = job->names.Intern("cudaLaunchKernel");
  launch_ex_ = job->names.Intern("cudaLaunchKernelExC");
  event_record_ = job->names.Intern("cudaEventRecord");
  wait_event_ = job->names.Intern("cudaStreamWaitEvent");
  memory_ = job->names.Intern("[memory]");
  params_ = job->names.Intern("record_param_comms");
}

int64_t RankSimulator::Random(int64_t below) {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return static_cast<int64_t>((random_ >> 11) % static_cast<uint64_t>(std::max<int64_t>(below, 1)));
}

double RankSimulator::LogNormal(double sigma) {
  constexpr int64_t kFine = int64_t{1} << 40;
  const auto uniform = [this] { return (static_cast<double>(Random(kFine)) + 0.5) / static_cast<double>(kFine); };
  const double radius = std::sqrt(-2 * std::log(uniform()));  // Box and Muller's normal deviates.
  return std::exp(sigma * radius * std::cos(2 * std::numbers::pi * uniform()));
}

LogEvent* RankSimulator::AddCpu(uint8_t lane, EventKind kind, uint32_t name) {
  LogEvent event;
  event.start_ns = host_ns_[lane];
  event.name = name;
  event.external_id = next_external_++;
  event.kind = kind;
  event.lane = lane;
  log_->cpu.push_back(event);
  return &log_->cpu.back();
}

size_t RankSimulator::Open(uint8_t lane, EventKind kind, uint32_t name) {
  AddCpu(lane, kind, name);
  current_external_ = log_->cpu.back().external_id;
  host_ns_[lane] += 900 + Random(700);
  return log_->cpu.size() - 1;
}

void RankSimulator::Close(size_t row, uint8_t lane) {
  host_ns_[lane] += 300 + Random(300);
  LogEvent& event = log_->cpu[row];
  event.duration_ns = host_ns_[lane] - event.start_ns;
}

void RankSimulator::AllocateOutput(uint8_t lane) {
  allocated_ += kMemoryBytes;
  LogEvent* event = AddCpu(lane, EventKind::kMemory, memory_);
  event->extra = static_cast<uint32_t>(log_->memory.size());
  log_->memory.push_back({kMemoryBytes, next_address_, allocated_, std::max<int64_t>(allocated_, int64_t{1} << 31)});
  next_address_ += kMemoryBytes;
}

void RankSimulator::Run(uint8_t lane, const OpSpec& op, int64_t extra_ns, bool backward) {
  size_t rows[8];
  size_t depth = 0;
  for (uint32_t range : op.ranges) rows[depth++] = Open(lane, EventKind::kCpuOp, range);
  if (op.differentiable && backward && !forward_marks_.empty()) {
    LogEvent& node = log_->cpu[rows[1]];
    node.flow = forward_marks_.back().first;
    node.sequence = forward_marks_.back().second;
    node.backward = true;
    log_->cpu[rows[0]].sequence = node.sequence;
    forward_marks_.pop_back();
  } else if (op.differentiable && !backward) {
    LogEvent& outer = log_->cpu[rows[depth - 1]];
    outer.flow = next_flow_++;
    outer.sequence = next_sequence_++;
    forward_marks_.emplace_back(outer.flow, outer.sequence);
  }
  for (uint32_t view : op.views) {
    Close(Open(lane, EventKind::kCpuOp, view), lane);
  }
  if (spec_.memory_events && !op.kernels.empty()) AllocateOutput(lane);
  current_external_ = log_->cpu[rows[depth - 1]].external_id;
  for (const KernelSpec& kernel : op.kernels) Launch(lane, kernel, extra_ns);
  while (depth > 0) Close(rows[--depth], lane);
}

void RankSimulator::Launch(uint8_t lane, const KernelSpec& kernel, int64_t extra_ns) {
  const auto base_ns = Scaled(kernel.duration_ns, spec_.kernel_scale);
  const auto spread_ns = Scaled(base_ns, spec_.kernel_spread);
  int64_t noisy_ns = base_ns + Random(2 * spread_ns + 1) - spread_ns;
  if (spec_.kernel_tail > 0) noisy_ns = Scaled(noisy_ns, LogNormal(spec_.kernel_tail));
  const int64_t duration_ns = Scaled(noisy_ns, step_factor_) + extra_ns;
  DeviceWork(lane, EventKind::kKernel, kernel.name, launch_, duration_ns);
}

void RankSimulator::DeviceWork(uint8_t lane, EventKind kind, uint32_t name, uint32_t call, int64_t duration_ns) {
  if (spec_.cpu_only) {
    host_ns_[lane] += duration_ns;
    return;
  }
  const int64_t call_ns = host_ns_[lane];
  const int64_t call_duration_ns = 3'600 + Random(2'400);
  host_ns_[lane] += call_duration_ns;
  LogEvent work;
  work.kind = kind;
  work.name = name;
  work.lane = kComputeStream;
  work.external_id = current_external_;
  work.correlation = next_correlation_;
  // Compilers evaluate arguments in orders of their own: a statement draws at most one number.
  const int64_t after_other_work_ns = compute_free_ns_ + 800 + Random(500);
  const int64_t after_launch_ns = host_ns_[lane] + 1'200 + Random(900);
  work.start_ns = std::max(after_launch_ns, after_other_work_ns) + std::exchange(kernel_delay_ns_, 0);
  work.duration_ns = duration_ns;
  work.extra = static_cast<uint32_t>(duration_ns / 100);
  compute_free_ns_ = work.end_ns();
  log_->device.push_back(work);
  LogEvent runtime;
  runtime.kind = EventKind::kRuntime;
  runtime.name = call;
  runtime.lane = lane;
  runtime.external_id = current_external_;
  runtime.correlation = next_correlation_++;
  runtime.start_ns = call_ns;
  runtime.duration_ns = call_duration_ns;
  runtime.flow = 1;
  log_->device.push_back(runtime);
}

void RankSimulator::Copy(uint8_t lane, uint32_t name, uint32_t call, int64_t duration_ns) {
  DeviceWork(lane, EventKind::kMemcpy, name, call, duration_ns);
}

void RankSimulator::Set(uint8_t lane, uint32_t name, uint32_t call, int64_t duration_ns) {
  DeviceWork(lane, EventKind::kMemset, name, call, duration_ns);
}

void RankSimulator::Call(uint8_t lane, uint32_t name, int64_t duration_ns) {
  if (!spec_.cpu_only) {
    LogEvent runtime;
    runtime.kind = EventKind::kRuntime;
    runtime.name = name;
    runtime.lane = lane;
    runtime.external_id = current_external_;
    runtime.correlation = next_correlation_++;
    runtime.start_ns = host_ns_[lane];
    runtime.duration_ns = duration_ns;
    log_->device.push_back(runtime);
  }
  host_ns_[lane] += duration_ns;
}

void RankSimulator::Synchronize(uint8_t lane, uint32_t name) {
  const int64_t done_ns = std::max(host_ns_[lane] + 2'000, compute_free_ns_ + 4'000 + Random(1'000));
  Call(lane, name, done_ns - host_ns_[lane]);
}

void RankSimulator::WaitUntil(int64_t time_ns) {
  if (spec_.cpu_only) {
    host_ns_[kMainThread] = std::max(host_ns_[kMainThread], time_ns);
    host_ns_[kAutogradThread] = std::max(host_ns_[kAutogradThread], time_ns);
  }
  compute_free_ns_ = std::max(compute_free_ns_, time_ns);
}

PendingCollective RankSimulator::Issue(uint8_t lane, uint32_t collective, uint8_t stream, bool waits_for_compute) {
  const CollectiveNames& names = NamesOf(job_->collectives[collective].NameOn(rank_));
  const size_t outer = Open(lane, EventKind::kCpuOp, job_->names.Intern(names.operator_name));
  PendingCollective pending;
  pending.collective = collective;
  if (spec_.cpu_only) {
    Close(outer, lane);
    LogEvent* range = AddCpu(kCollectiveThread, EventKind::kUserAnnotation, job_->names.Intern(names.gloo_range));
    range->collective = collective + 1;
    pending.event = log_->cpu.size() - 1;
    pending.ready_ns = host_ns_[lane] + 8'000 + Random(4'000);
    return pending;
  }
  const size_t params = Open(lane, EventKind::kCpuOp, params_);
  log_->cpu[params].collective = collective + 1;
  const uint32_t params_external = current_external_;
  const size_t range = Open(lane, EventKind::kUserAnnotation, job_->names.Intern(names.nccl_range));
  current_external_ = params_external;
  Call(lane, event_record_, 1'100 + Random(400));
  Call(lane, wait_event_, 900 + Random(300));
  LogEvent kernel;
  kernel.kind = EventKind::kKernel;
  kernel.name = job_->names.Intern(names.kernel);
  kernel.lane = stream;
  kernel.external_id = params_external;
  kernel.correlation = next_correlation_;
  kernel.collective = collective + 1;
  pending.event = log_->device.size();
  log_->device.push_back(kernel);
  LogEvent runtime;
  runtime.kind = EventKind::kRuntime;
  runtime.name = launch_ex_;
  runtime.lane = lane;
  runtime.external_id = params_external;
  runtime.correlation = next_correlation_++;
  runtime.start_ns = host_ns_[lane];
  runtime.duration_ns = 7'000 + Random(3'000);
  runtime.flow = 1;
  log_->device.push_back(runtime);
  host_ns_[lane] += runtime.duration_ns;
  pending.ready_ns = host_ns_[lane] + 1'500 + Random(900);
  if (waits_for_compute) pending.ready_ns = std::max(pending.ready_ns, compute_free_ns_ + 1'200 + Random(300));
  Close(range, lane);
  Close(params, lane);
  Close(outer, lane);
  return pending;
}

void RankSimulator::Complete(const PendingCollective& pending, int64_t arrival_ns, int64_t end_ns) {
  LogEvent& event = spec_.cpu_only ? log_->cpu[pending.event] : log_->device[pending.event];
  event.start_ns = arrival_ns;
  event.duration_ns = end_ns - arrival_ns;
}

void RankSimulator::BeginStep(const std::string& name) {
  step_row_ = Open(kMainThread, EventKind::kUserAnnotation, job_->names.Intern(name));
  step_device_begin_ = log_->device.size();
  forward_marks_.clear();
  if (spec_.step_tail > 0) step_factor_ = LogNormal(spec_.step_tail);
}

void RankSimulator::EndStep() {
  Close(step_row_, kMainThread);
  if (spec_.memory_events) {
    LogEvent* event = AddCpu(kMainThread, EventKind::kMemory, memory_);
    const int64_t freed = allocated_ - (1 << 28);
    allocated_ -= freed;
    event->extra = static_cast<uint32_t>(log_->memory.size());
    log_->memory.push_back({-freed, next_address_, allocated_, int64_t{1} << 31});
  }
  int64_t first_ns = INT64_MAX;
  int64_t last_ns = 0;
  for (size_t row = step_device_begin_; row < log_->device.size(); ++row) {
    const LogEvent& event = log_->device[row];
    if (!event.OnDevice() || event.lane != kComputeStream) continue;
    first_ns = std::min(first_ns, event.start_ns);
    last_ns = std::max(last_ns, event.end_ns());
  }
  if (last_ns == 0) return;
  LogEvent annotation;
  annotation.kind = EventKind::kDeviceAnnotation;
  annotation.name = log_->cpu[step_row_].name;
  annotation.external_id = log_->cpu[step_row_].external_id;
  annotation.lane = kComputeStream;
  annotation.start_ns = first_ns - 1;
  annotation.duration_ns = last_ns - first_ns + 2;
  log_->device.push_back(annotation);
  host_ns_[kMainThread] += 5'000 + Random(2'000);
}

}  // namespace lockstep::tracegen
