#include "present/export/live/figures.h"

#include <array>

namespace lockstep::export_live {
namespace {

using live::JobView;
using live::RankView;
using live::ServingView;

constexpr bool kOfSteps = true;
constexpr bool kOfNow = false;

// Times are in seconds.
std::optional<double> Told(const std::optional<double>& value) { return value; }
std::optional<double> Told(const std::optional<int64_t>& ns) {
  if (!ns) return std::nullopt;
  return static_cast<double>(*ns) / 1e9;
}

template <typename Owner, typename Value>
Owner OwnerOf(Value Owner::*);

template <auto field>
std::optional<double> Of(const decltype(OwnerOf(field))& owner) {
  return Told(owner.*field);
}
template <std::optional<double> live::RankReading::*field>
std::optional<double> Read(const RankView& rank) {
  return rank.reading.*field;
}
template <std::optional<double> live::GpuReading::*field>
std::optional<double> OfGpu(const RankView& rank) {
  return rank.gpu ? rank.gpu->reading.*field : std::nullopt;
}
template <live::Phase phase>
std::optional<double> PhaseOf(const RankView& rank) {
  return rank.phase_ratio[static_cast<size_t>(phase)];
}
template <live::RankState state>
std::optional<double> RanksThat(const JobView& job) {
  double count = 0;
  for (const RankView& rank : job.ranks) count += rank.state == state ? 1 : 0;
  return count;
}
template <live::AlarmSeverity severity>
std::optional<double> AlarmsOf(const JobView& job) {
  double count = 0;
  for (const live::Alarm& alarm : job.alarms) count += alarm.severity == severity ? 1 : 0;
  return count;
}

std::optional<double> Behind(const RankView& rank) {
  if (!rank.behind_steps) return std::nullopt;
  return static_cast<double>(*rank.behind_steps);
}
std::optional<double> Power(const RankView& rank) { return rank.gpu ? rank.gpu->power_watts : std::nullopt; }
std::optional<double> RanksThere(const JobView& job) { return static_cast<double>(job.ranks.size()); }
std::optional<double> RanksMissing(const JobView& job) {
  if (!job.world_size) return std::nullopt;
  return static_cast<double>(job.missing_ranks.size());
}

template <live::Phase phase>
constexpr Figure<RankView> PhaseFigure(const char* tag, const char* metric, const char* meaning) {
  return {tag, 1, metric, "1", kOfSteps, meaning, PhaseOf<phase>};
}

// Names of OpenTelemetry's own: hw.gpu.* (semantic conventions, hardware metrics).
constexpr std::array kRankFigures = {
    Figure<RankView>{"step/time_ms", 1e3, "lockstep.step.duration", "s", kOfSteps,
                     "How long a step takes, mean of the newest ones.", Of<&RankView::step_ns>},
    Figure<RankView>{"step/own_ms", 1e3, "lockstep.step.own_duration", "s", kOfSteps,
                     "The same without exposed communication: what the rank itself takes.", Of<&RankView::own_ns>},
    Figure<RankView>{"step/per_second", 1, "lockstep.step.rate", "{step}/s", kOfSteps, "Steps that end in a second.",
                     Of<&RankView::steps_per_s>},
    PhaseFigure<live::Phase::kInput>("step_share/input", "lockstep.step.input.ratio",
                                     "Share (0..1) of the step that is waiting for input."),
    PhaseFigure<live::Phase::kHostToDevice>("step_share/h2d", "lockstep.step.h2d.ratio",
                                            "Share (0..1) of the step that is copying input to the device."),
    PhaseFigure<live::Phase::kForward>("step_share/forward", "lockstep.step.forward.ratio",
                                       "Share (0..1) of the step that is forward."),
    PhaseFigure<live::Phase::kBackward>("step_share/backward", "lockstep.step.backward.ratio",
                                        "Share (0..1) of the step that is backward."),
    PhaseFigure<live::Phase::kOptimizer>("step_share/optimizer", "lockstep.step.optimizer.ratio",
                                         "Share (0..1) of the step that is the optimizer."),
    PhaseFigure<live::Phase::kExposedCommunication>(
        "step_share/comm_exposed", "lockstep.step.comm_exposed.ratio",
        "Share (0..1) of the step that is communication which nothing hides."),
    PhaseFigure<live::Phase::kCheckpoint>("step_share/checkpoint", "lockstep.step.checkpoint.ratio",
                                          "Share (0..1) of the step that is saving a checkpoint."),
    PhaseFigure<live::Phase::kOther>("step_share/other", "lockstep.step.other.ratio",
                                     "Share (0..1) of the step that no phase covers."),
    Figure<RankView>{"progress/behind_steps", 1, "lockstep.step.behind", "{step}", kOfNow,
                     "Steps fewer than the rank that has ended most.", Behind},
    Figure<RankView>{"progress/age_s", 1, "lockstep.step.age", "s", kOfNow, "How long ago the newest step ended.",
                     Of<&RankView::progress_age_ns>},
    Figure<RankView>{"throughput/samples_per_s", 1, "lockstep.samples.rate", "{sample}/s", kOfSteps,
                     "Samples that the program says it works through in a second.", Of<&RankView::samples_per_s>},
    Figure<RankView>{"throughput/tokens_per_s", 1, "lockstep.tokens.rate", "{token}/s", kOfSteps,
                     "Tokens that the program says it works through in a second.", Of<&RankView::tokens_per_s>},
    Figure<RankView>{"throughput/model_tflops_per_s", 1e-12, "lockstep.model_flops.rate", "{operation}/s", kOfSteps,
                     "Operations that the program says its model needs, in a second.",
                     Of<&RankView::model_flops_per_s>},
    Figure<RankView>{"throughput/mfu", 1, "lockstep.mfu", "1", kOfSteps,
                     "The same by what the device can do at most (0..1).", Of<&RankView::mfu_ratio>},
    Figure<RankView>{"collectives/bus_gb_per_s", 1e-9, "lockstep.collective.bus_bandwidth", "By/s", kOfNow,
                     "Bus bandwidth of NCCL's operations while they run, waiting included.",
                     Of<&RankView::bus_bytes_per_s>},
    Figure<RankView>{"collectives/oldest_open_s", 1, "lockstep.collective.oldest_open", "s", kOfNow,
                     "How long ago the oldest operation of NCCL's that has not ended was called; 0: there is none.",
                     Of<&RankView::oldest_collective_ns>},
    Figure<RankView>{"gpu/utilization", 1, "hw.gpu.utilization", "1", kOfNow,
                     "Share (0..1) of time in which a kernel ran on the rank's GPU.",
                     OfGpu<&live::GpuReading::utilization_ratio>},
    Figure<RankView>{"gpu/memory_used_gb", 1e-9, "hw.gpu.memory.usage", "By", kOfNow,
                     "Memory in use on the rank's GPU, GB = 10^9 bytes.", OfGpu<&live::GpuReading::memory_used_bytes>},
    Figure<RankView>{"gpu/power_watts", 1, "hw.power", "W", kOfNow, "Power that the rank's GPU takes.", Power},
    Figure<RankView>{"gpu/temperature_celsius", 1, "hw.temperature", "Cel", kOfNow, "Hottest sensor of the rank's GPU.",
                     OfGpu<&live::GpuReading::temperature_celsius>},
    Figure<RankView>{"torch_memory/allocated_gb", 1e-9, "lockstep.torch.memory.allocated", "By", kOfNow,
                     "Memory that PyTorch's allocator has given out, GB = 10^9 bytes.",
                     Read<&live::RankReading::torch_allocated_bytes>},
    Figure<RankView>{"torch_memory/reserved_gb", 1e-9, "lockstep.torch.memory.reserved", "By", kOfNow,
                     "Memory that PyTorch's allocator holds, GB = 10^9 bytes.",
                     Read<&live::RankReading::torch_reserved_bytes>},
    Figure<RankView>{"torch_memory/peak_gb", 1e-9, "lockstep.torch.memory.peak", "By", kOfNow,
                     "The most that PyTorch's allocator had given out at once, GB = 10^9 bytes.",
                     Read<&live::RankReading::torch_peak_bytes>},
    Figure<RankView>{"process/cpu_cores", 1, "lockstep.rank.cpu", "{cpu}", kOfNow,
                     "CPU time of the rank's process by time.", Of<&RankView::cpu_cores>},
    Figure<RankView>{"process/resident_gb", 1e-9, "lockstep.rank.memory.resident", "By", kOfNow,
                     "Resident memory of the rank's process, GB = 10^9 bytes.",
                     Read<&live::RankReading::resident_bytes>},
    Figure<RankView>{"process/read_mb_per_s", 1e-6, "lockstep.rank.io.read", "By/s", kOfNow,
                     "What the rank's process reads from storage, MB = 10^6 bytes.", Of<&RankView::io_read_per_s>},
    Figure<RankView>{"process/written_mb_per_s", 1e-6, "lockstep.rank.io.written", "By/s", kOfNow,
                     "What the rank's process writes to storage, MB = 10^6 bytes.", Of<&RankView::io_written_per_s>},
};

constexpr std::array kJobFigures = {
    Figure<JobView>{"step/time_ms", 1e3, "lockstep.job.step.duration", "s", kOfSteps,
                    "How long a step takes: the median rank.", Of<&JobView::step_ns>},
    Figure<JobView>{"step/own_ms", 1e3, "lockstep.job.step.own_duration", "s", kOfSteps,
                    "The same without exposed communication.", Of<&JobView::own_ns>},
    Figure<JobView>{"step/per_second", 1, "lockstep.job.step.rate", "{step}/s", kOfSteps,
                    "Steps that end in a second: the median rank.", Of<&JobView::steps_per_s>},
    Figure<JobView>{"step_share/compute", 1, "lockstep.job.step.compute.ratio", "1", kOfSteps,
                    "Share (0..1) of all ranks' step time: forward, backward, optimizer.", Of<&JobView::compute_ratio>},
    Figure<JobView>{"step_share/comm_exposed", 1, "lockstep.job.step.comm_exposed.ratio", "1", kOfSteps,
                    "Share (0..1) of all ranks' step time: communication which nothing hides.",
                    Of<&JobView::communication_ratio>},
    Figure<JobView>{"step_share/input", 1, "lockstep.job.step.input.ratio", "1", kOfSteps,
                    "Share (0..1) of all ranks' step time: input and its copy to the device.",
                    Of<&JobView::input_ratio>},
    Figure<JobView>{"step/slowest_to_median", 1, "lockstep.job.slowest.ratio", "1", kOfSteps,
                    "Own time of the slowest rank by the median rank's; there where it is a tenth or more.",
                    Of<&JobView::slowest_ratio>},
    Figure<JobView>{"throughput/samples_per_s", 1, "lockstep.job.samples.rate", "{sample}/s", kOfSteps,
                    "Samples in a second, all ranks.", Of<&JobView::samples_per_s>},
    Figure<JobView>{"throughput/tokens_per_s", 1, "lockstep.job.tokens.rate", "{token}/s", kOfSteps,
                    "Tokens in a second, all ranks.", Of<&JobView::tokens_per_s>},
    Figure<JobView>{"throughput/mfu", 1, "lockstep.job.mfu", "1", kOfSteps,
                    "Operations that the model needs by what all devices can do at most (0..1).",
                    Of<&JobView::mfu_ratio>},
    Figure<JobView>{"ranks/there", 1, "lockstep.job.ranks", "{rank}", kOfNow, "Ranks that are there.", RanksThere},
    Figure<JobView>{"ranks/missing", 1, "lockstep.job.ranks.missing", "{rank}", kOfNow,
                    "Ranks that none of the nodes asked has.", RanksMissing},
    Figure<JobView>{"ranks/stuck", 1, "lockstep.job.ranks.stuck", "{rank}", kOfNow,
                    "Ranks whose steps do not end any more.", RanksThat<live::RankState::kStuck>},
    Figure<JobView>{"ranks/unheard", 1, "lockstep.job.ranks.unheard", "{rank}", kOfNow,
                    "Ranks whose node does not answer.", RanksThat<live::RankState::kUnheard>},
    Figure<JobView>{"alarms/critical", 1, "lockstep.job.alarms.critical", "{alarm}", kOfNow,
                    "What is wrong now, as lockstep top says it: critical.", AlarmsOf<live::AlarmSeverity::kCritical>},
    Figure<JobView>{"alarms/warning", 1, "lockstep.job.alarms.warning", "{alarm}", kOfNow,
                    "What is wrong now, as lockstep top says it: warnings.", AlarmsOf<live::AlarmSeverity::kWarning>},
};

template <std::optional<double> live::ServingReading::*field>
std::optional<double> ReadServing(const ServingView& serving) {
  return serving.reading.*field;
}
template <std::optional<double> ServingView::*field>
std::optional<double> OfServing(const ServingView& serving) {
  return serving.*field;
}

constexpr std::array kServingFigures = {
    Figure<ServingView>{"requests_per_s", 1, "lockstep.serving.requests.rate", "{request}/s", kOfNow,
                        "Requests that end in a second.", OfServing<&ServingView::requests_per_s>},
    Figure<ServingView>{"failure_share", 1, "lockstep.serving.requests.failure.ratio", "1", kOfNow,
                        "Share (0..1) of requests that failed.", OfServing<&ServingView::failure_ratio>},
    Figure<ServingView>{"failures", 1, "lockstep.serving.requests.failed", "{request}", kOfNow,
                        "Requests that have failed.", ReadServing<&live::ServingReading::failures>},
    Figure<ServingView>{"running", 1, "lockstep.serving.requests.running", "{request}", kOfNow, "Requests under way.",
                        ReadServing<&live::ServingReading::running>},
    Figure<ServingView>{"tokens_per_s", 1, "lockstep.serving.tokens.rate", "{token}/s", kOfNow, "Outputs in a second.",
                        OfServing<&ServingView::tokens_per_s>},
};

constexpr std::array kQuantiles = {Quantile{0.5, "p50"}, Quantile{0.95, "p95"}, Quantile{0.99, "p99"}};

}  // namespace

std::span<const Figure<RankView>> RankFigures() { return kRankFigures; }
std::span<const Figure<JobView>> JobFigures() { return kJobFigures; }
std::span<const Figure<ServingView>> ServingFigures() { return kServingFigures; }
std::span<const Quantile> ShownQuantiles() { return kQuantiles; }

}  // namespace lockstep::export_live
