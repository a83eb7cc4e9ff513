#include "node/live/node_track.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace lockstep::live {

using model::Stage;

namespace {

// Quantiles are those of the last minute: rates beside them are over the same time.
constexpr int64_t kServingWindowNs = 60'000'000'000;
constexpr double kThrottleAlarm = 0.05;
constexpr int64_t kXidWindowNs = 600'000'000'000;  // As the rules for Prometheus have it.
// What lockstepd calls the driver where it calls GPUs by their numbers.
constexpr std::string_view kDriver = "driver";

RankCounters::Values CountersOf(const RankReading& reading) {
  RankCounters::Values values;
  values[kSteps] = reading.steps;
  values[kStepSeconds] = reading.step_s;
  values[kProgress] = reading.progress_unix_s;
  values[kSamples] = reading.samples;
  values[kTokens] = reading.tokens;
  values[kModelFlops] = reading.model_flops;
  values[kCollectiveSeconds] = reading.collective_s;
  values[kBusBytes] = reading.collective_bus_bytes;
  values[kDropped] = reading.dropped_events;
  values[kCpuSeconds] = reading.cpu_s;
  values[kReadBytes] = reading.io_read_bytes;
  values[kWrittenBytes] = reading.io_written_bytes;
  values[kLogErrors] = reading.log_errors;
  for (size_t i = 0; i < model::kStages.size(); ++i) values[kFirstPhase + i] = reading.phase_s[i];
  return values;
}

std::optional<double> Sum(const std::array<std::optional<double>, model::kStages.size()>& ratios,
                          std::initializer_list<Stage> phases) {
  std::optional<double> sum;
  for (const Stage phase : phases) {
    const auto& ratio = ratios[static_cast<size_t>(phase)];
    if (ratio) sum = sum.value_or(0) + *ratio;
  }
  return sum;
}

/// Which of the node's GPUs a rank has: the one that its device names, else the one of its local rank.
const GpuReading* GpuOf(const RankReading& rank, const NodeReading& node) {
  if (rank.device == "cpu") return nullptr;
  const size_t colon = rank.device.rfind(':');
  const auto named =
      colon == std::string::npos ? node.gpus.end() : node.gpus.find(std::string(rank.device).substr(colon + 1));
  const auto found = named != node.gpus.end() ? named : node.gpus.find(rank.local_rank);
  return found == node.gpus.end() || !found->second.is_there ? nullptr : &found->second;
}

}  // namespace

std::optional<int64_t> Nanoseconds(std::optional<double> seconds) {
  constexpr double kMostSeconds = 9e9;
  if (!seconds || !(*seconds > -kMostSeconds) || !(*seconds < kMostSeconds)) return std::nullopt;
  return static_cast<int64_t>(*seconds * 1e9);
}

std::optional<uint64_t> Count(std::optional<double> value) {
  constexpr double kMost = 9e15;  // Exact up to here.
  if (!value || !(*value >= 0) || !(*value <= kMost)) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

void RankTrack::Take(RankReading now, int64_t taken_ns, int64_t window_ns) {
  if (now.pid != reading.pid) {
    counters.Clear();
    step_history.clear();
  }
  counters.Add(taken_ns, CountersOf(now), window_ns);
  reading = std::move(now);
  newest_step_ns.reset();
  if (counters.previous() == nullptr) return;
  const auto steps = counters.Growth(kSteps, *counters.previous());
  const auto seconds = counters.Growth(kStepSeconds, *counters.previous());
  if (!steps || *steps < 1 || !seconds) return;
  newest_step_ns = Nanoseconds(*seconds / *steps);
  if (!newest_step_ns) return;
  if (step_history.size() == kHistory) step_history.erase(step_history.begin());
  step_history.push_back(*newest_step_ns);
}

void NodeTrack::Take(NodeLook look, int64_t window_ns) {
  for (auto& [gpu, events] : xid_events) events.Forget(look.taken_ns, kXidWindowNs);
  if (!look.is_news) return;
  error = look.error;
  if (!error) return TakeAnswer(std::move(look), window_ns);
  last.host = look.host;
  last.place = look.place;
}

void NodeTrack::TakeAnswer(NodeLook look, int64_t window_ns) {
  std::map<RankKey, RankTrack> still_there;
  for (RankReading& reading : look.reading.ranks) {
    RankKey key{reading.job_id, reading.rank};
    auto known = ranks.extract(key);
    RankTrack& track = still_there[std::move(key)];
    if (known) track = std::move(known.mapped());
    track.Take(std::move(reading), look.taken_ns, window_ns);
  }
  ranks = std::move(still_there);
  look.reading.ranks.clear();
  std::erase_if(gpus, [&](const auto& entry) { return !look.reading.gpus.contains(entry.first); });
  for (const auto& [name, gpu] : look.reading.gpus) {
    gpus[name].Add(look.taken_ns, {gpu.energy_joules, gpu.thermal_throttle_s, gpu.hw_thermal_throttle_s}, window_ns);
    if (gpu.xid_events) xid_events[name].Add(look.taken_ns, *gpu.xid_events, kXidWindowNs);
  }
  std::erase_if(ports, [&](const auto& entry) { return !look.reading.ports.contains(entry.first); });
  for (const auto& [key, port] : look.reading.ports) {
    ports[key].Add(look.taken_ns, {port.received_bytes, port.transmitted_bytes, port.transmit_wait, port.errors},
                   window_ns);
  }
  auto before = std::exchange(serving, {});
  for (const ServingReading& reading : look.reading.serving) {
    const auto key = std::tuple(reading.job_id, reading.model, reading.engine);
    auto known = before.extract(key);
    auto& track = serving[key];
    if (known) track = std::move(known.mapped());
    track.Add(look.taken_ns, {reading.requests, reading.failures, reading.generation_tokens, reading.preemptions},
              std::max(window_ns, kServingWindowNs));
  }
  answered_ns = look.taken_ns;
  last = std::move(look);
}

GpuView NodeTrack::ViewOfGpu(const GpuReading& reading) const {
  GpuView view{.reading = reading, .power_watts = {}, .thermal_throttle_ratio = {}};
  const auto track = gpus.find(reading.gpu);
  if (track == gpus.end()) return view;
  view.power_watts = track->second.PerSecond(kEnergy);
  // Of two reasons that may hold at the same time the one that held longer: together they could be more than all time.
  view.thermal_throttle_ratio = track->second.PerSecond(kThrottle);
  const std::optional<double> hardware = track->second.PerSecond(kHardwareThrottle);
  if (hardware) view.thermal_throttle_ratio = std::max(view.thermal_throttle_ratio.value_or(0), *hardware);
  return view;
}

PortView NodeTrack::ViewOfPort(const PortKey& key, const PortReading& reading) const {
  PortView view;
  view.device = key.first;
  view.port = key.second;
  view.reading = reading;
  const auto track = ports.find(key);
  if (track == ports.end()) return view;
  view.received_per_s = track->second.PerSecond(kReceived);
  view.transmitted_per_s = track->second.PerSecond(kTransmitted);
  view.waits_per_s = track->second.PerSecond(kTransmitWait);
  view.errors_per_s = track->second.PerSecond(kPortErrors);
  return view;
}

RankView NodeTrack::ViewOf(const RankTrack& track, int64_t now_unix_ns) const {
  const RankReading& reading = track.reading;
  RankView view;
  view.rank = reading.rank;
  view.host = reading.host.empty() ? last.host : reading.host;
  view.pid = reading.pid;
  view.local_rank = reading.local_rank;
  view.user = reading.user;
  view.device = reading.device;
  view.step_count = Count(reading.steps);
  view.reading = reading;
  view.step_history = track.step_history;
  if (error) view.state = RankState::kUnheard;

  const RankCounters& counters = track.counters;
  RankCounters::Point beginning;
  for (auto& value : beginning.values) value = 0;
  const double grown_steps = counters.Growth(kSteps).value_or(0);
  view.is_since_start = grown_steps < 1 && reading.steps.value_or(0) >= 1;
  const RankCounters::Point* base = view.is_since_start ? &beginning : counters.base();
  const auto growth = [&](size_t i) -> std::optional<double> {
    return base == nullptr ? std::nullopt : counters.Growth(i, *base);
  };
  const double steps = growth(kSteps).value_or(0);
  const double step_s = growth(kStepSeconds).value_or(0);
  if (steps >= 1 && step_s > 0) {
    view.step_ns = Nanoseconds(step_s / steps);
    for (size_t i = 0; i < model::kStages.size(); ++i) {
      if (const auto seconds = growth(kFirstPhase + i)) view.phase_ratio[i] = *seconds / step_s;
    }
    // Between the ends of two steps, which does not depend on when we looked.
    const std::optional<double> between_s = view.is_since_start ? std::nullopt : growth(kProgress);
    view.steps_per_s = between_s && *between_s > 0 ? steps / *between_s : steps / step_s;
  }
  view.compute_ratio = Sum(view.phase_ratio, {Stage::kForward, Stage::kBackward, Stage::kOptimizer});
  view.communication_ratio = Sum(view.phase_ratio, {Stage::kCommunication});
  view.input_ratio = Sum(view.phase_ratio, {Stage::kInput, Stage::kHostToDevice});
  if (view.step_ns && view.communication_ratio) {
    const double own = static_cast<double>(*view.step_ns) * (1 - std::clamp(*view.communication_ratio, 0.0, 1.0));
    view.own_ns = static_cast<int64_t>(own);
  }
  // What is done in steps by how much of it a step has: looks and steps do not keep time together.
  const auto rate = [&](size_t i) -> std::optional<double> {
    const std::optional<double> amount = growth(i);
    if (amount && steps >= 1 && view.steps_per_s) return *amount / steps * *view.steps_per_s;
    return reading.steps ? std::nullopt : counters.PerSecond(i);
  };
  view.samples_per_s = rate(kSamples);
  view.tokens_per_s = rate(kTokens);
  view.model_flops_per_s = rate(kModelFlops);
  if (view.model_flops_per_s && reading.peak_flops_per_s.value_or(0) > 0) {
    view.mfu_ratio = *view.model_flops_per_s / *reading.peak_flops_per_s;
  }
  const double collective_s = counters.Growth(kCollectiveSeconds).value_or(0);
  if (const auto bytes = counters.Growth(kBusBytes); bytes && collective_s > 0) {
    view.bus_bytes_per_s = *bytes / collective_s;
  }
  view.dropped_per_s = counters.PerSecond(kDropped);
  view.log_errors_per_s = counters.PerSecond(kLogErrors);
  view.cpu_cores = counters.PerSecond(kCpuSeconds);
  view.io_read_per_s = counters.PerSecond(kReadBytes);
  view.io_written_per_s = counters.PerSecond(kWrittenBytes);
  for (const auto& [name, group] : reading.groups) {
    const std::optional<int64_t> open_ns = Nanoseconds(group.oldest_inflight_s);
    if (open_ns) view.oldest_collective_ns = std::max(view.oldest_collective_ns.value_or(0), *open_ns);
  }
  if (const auto progress_ns = Nanoseconds(reading.progress_unix_s)) {
    const int64_t node_now_ns = now_unix_ns + last.clock_offset_ns.value_or(0);
    view.progress_age_ns = std::max<int64_t>(node_now_ns - *progress_ns, 0);
  }
  view.open_phase_ns = Nanoseconds(reading.open_phase_s);
  if (const GpuReading* gpu = GpuOf(reading, last.reading)) view.gpu = ViewOfGpu(*gpu);
  return view;
}

NodeView NodeTrack::View(int64_t now_ns) const {
  NodeView view;
  view.host = last.host;
  view.place = last.place;
  view.version = last.reading.version;
  view.error = error;
  if (answered_ns) view.silent_ns = error ? std::max<int64_t>(now_ns - *answered_ns, 0) : 0;
  view.clock_offset_ns = last.clock_offset_ns;
  view.collectors = last.reading.collectors;
  view.bad_line_count = last.reading.bad_line_count;
  view.is_cut = last.reading.is_cut;
  AddDevices(&view);
  return view;
}

void NodeTrack::AddDevices(NodeView* out) const {
  NodeView& view = *out;
  for (const auto& [key, port] : last.reading.ports) view.ports.push_back(ViewOfPort(key, port));
  view.visible_gpus = last.reading.visible_gpus;
  view.expected_gpus = last.reading.expected_gpus;
  if (view.visible_gpus && view.expected_gpus && *view.visible_gpus < *view.expected_gpus) {
    view.alarms.push_back(
        {"gpu_missing", AlarmSeverity::kCritical,
         fmt::format("{}: {:.0f} of {:.0f} GPUs are there", view.host, *view.visible_gpus, *view.expected_gpus),
         std::nullopt});
  }
  for (const auto& [key, gpu] : last.reading.gpus) {
    const std::string& name = key;
    if (name == kDriver) {
      if (gpu.unresponsive.value_or(0) > 0) {
        view.alarms.push_back({"gpu_unresponsive", AlarmSeverity::kCritical,
                               view.host + ": the driver of its GPUs does not answer", std::nullopt});
      }
      continue;
    }
    const GpuView now = ViewOfGpu(gpu);
    if (gpu.is_there) {
      view.gpus.push_back(now);
    } else {
      view.lost_gpus.push_back(gpu);
    }
    const auto add = [&](AlarmSeverity severity, const char* kind, const std::string& text) {
      view.alarms.push_back({kind, severity, fmt::format("{} gpu {}: {}", view.host, name, text), std::nullopt});
    };
    if (gpu.unresponsive.value_or(0) > 0) {
      add(AlarmSeverity::kCritical, "gpu_unresponsive", "its driver does not answer");
    }
    const auto xids = xid_events.find(name);
    if (xids != xid_events.end() && xids->second.count() > 0) {
      const double count = xids->second.count();
      add(AlarmSeverity::kCritical, "gpu_xid",
          fmt::format("{:.0f} Xid error{} in the last ten minutes", count, count == 1 ? "" : "s"));
    }
    if (now.thermal_throttle_ratio.value_or(0) > kThrottleAlarm) {
      add(AlarmSeverity::kWarning, "gpu_throttled", "slowed down because it is too hot");
    }
  }
}

std::vector<ServingView> NodeTrack::Serving() const {
  std::vector<ServingView> views;
  for (const ServingReading& reading : last.reading.serving) {
    ServingView& view = views.emplace_back();
    view.host = last.host;
    view.reading = reading;
    const auto& track = serving.at(ServingKey(reading.job_id, reading.model, reading.engine));
    view.requests_per_s = track.PerSecond(kRequests);
    view.tokens_per_s = track.PerSecond(kGenerationTokens);
    view.preemptions_per_s = track.PerSecond(kPreemptions);
    const auto ended = track.Growth(kRequests);
    const auto failed = track.Growth(kFailures);
    if (ended && failed && *ended > 0) view.failure_ratio = *failed / *ended;
  }
  return views;
}

}  // namespace lockstep::live
