#include "present/export/timeline/rank_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace lockstep::timeline {
namespace {

using model::Lane;

bool OnDevice(Lane lane) { return lane == Lane::kDevice || lane == Lane::kDeviceAnnotation; }

/// Devices and streams first, then threads, then what belongs to neither.
auto OrderKey(const model::Track& track) {
  const int kind = OnDevice(track.lane) ? 0 : track.lane == Lane::kOther ? 2 : 1;
  const int lane = track.lane == Lane::kOperators ? 0
                   : track.lane == Lane::kRuntime ? 1
                   : track.lane == Lane::kPython  ? 2
                                                  : static_cast<int>(track.lane);
  return std::tuple(kind, track.process_id, track.thread_id, lane);
}

std::set<int64_t> DevicesWithEvents(const model::RankTrace& trace) {
  std::set<int64_t> devices;
  for (const model::Track& track : trace.tracks) {
    if (track.lane == Lane::kDevice && !track.events.empty()) devices.insert(track.process_id);
  }
  return devices;
}

const model::Device* FindDevice(const model::RankTrace& trace, int64_t ordinal) {
  for (const model::Device& device : trace.devices) {
    if (device.ordinal.value == ordinal) return &device;
  }
  return nullptr;
}

/// PyTorch's own word for a device of this maker.
const char* DeviceKind(std::string_view name) {
  for (const std::string_view maker : {"NVIDIA", "Tesla", "GeForce", "Quadro", "AMD", "Instinct", "Radeon"}) {
    if (name.find(maker) != std::string_view::npos) return "cuda:";
  }
  return name.find("Intel") != std::string_view::npos ? "xpu:" : "device ";
}

std::string TrackName(const model::Run& run, const model::Track& track, bool several_devices, size_t process_count) {
  if (OnDevice(track.lane)) {
    std::string name = several_devices ? fmt::format("device {} stream {}", track.process_id, track.thread_id)
                                       : fmt::format("stream {}", track.thread_id);
    if (track.lane == Lane::kDeviceAnnotation) name += " annotations";
    return name;
  }
  const std::string_view given = run.names[track.thread_name];
  std::string name = given.empty() ? fmt::format("thread {}", track.thread_id) : std::string(given);
  if (process_count > 1) name += fmt::format(" of {}", track.process_id);
  switch (track.lane) {
    case Lane::kPython: return name + " · python";
    case Lane::kRuntime: return name + " · runtime";
    case Lane::kOther: return name + " · other";
    case Lane::kOperators:
    case Lane::kDevice:
    case Lane::kDeviceAnnotation: break;
  }
  return name;
}

/// Requests that are written, so that they nest: of several that begin together the longest is the outermost.
void PlanRequests(const model::RankTrace& trace, size_t rank_index, const RunSelection& selection, RankPlan* plan) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < trace.requests.size(); ++i) {
    if (selection.Contains(rank_index, Lane::kOperators, trace.requests[i].start_ns)) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const model::RequestRecord& x = trace.requests[a];
    const model::RequestRecord& y = trace.requests[b];
    return x.start_ns != y.start_ns ? x.start_ns < y.start_ns : x.duration_ns > y.duration_ns;
  });
  for (const uint32_t i : order) {
    plan->requests.start_ns.push_back(trace.requests[i].start_ns);
    plan->requests.duration_ns.push_back(trace.requests[i].duration_ns);
    plan->requests.name.push_back(NameId{i});
  }
  plan->request_levels = FindNestingLevels(plan->requests);
}

}  // namespace

TrackIds::TrackIds(const model::Run& run) {
  std::map<int32_t, int32_t> window_of;
  int32_t highest = 0;
  for (const model::RankTrace& trace : run.ranks) highest = std::max(highest, trace.rank.value);
  // A rank's later windows are processes of their own, numbered above all ranks.
  const bool ranks_fit = highest < 10'000'000;
  int32_t next = ranks_fit ? highest + 1 : 0;
  for (const model::RankTrace& trace : run.ranks) {
    const bool first = window_of[trace.rank.value]++ == 0;
    process_ids_.push_back(first && ranks_fit ? trace.rank.value : next++);
  }
  next_thread_id_ = 1000;
  while (next_thread_id_ <= next) next_thread_id_ *= 10;
}

std::string ProcessName(const model::RankTrace& trace, bool several_windows) {
  std::string name = fmt::format("rank {}", trace.rank.value);
  if (several_windows) name += fmt::format(" · window {}", trace.window);
  if (!trace.host.empty()) name += " · " + trace.host;
  const std::set<int64_t> devices = DevicesWithEvents(trace);
  if (devices.size() == 1) {
    const model::Device* device = FindDevice(trace, *devices.begin());
    if (device != nullptr && !device->name.empty()) {
      name += fmt::format(" · {}{} ({})", DeviceKind(device->name), *devices.begin(), device->name);
    } else {
      name += fmt::format(" · device {}", *devices.begin());
    }
  } else if (devices.size() > 1) {
    name += fmt::format(" · {} devices", devices.size());
  } else {
    name += " · CPU";
  }
  return name;
}

RankPlan PlanRank(const model::Run& run, size_t rank_index, const RunSelection& selection, TrackIds* ids) {
  const model::RankTrace& trace = run.ranks[rank_index];
  RankPlan plan;
  const bool several_windows = std::any_of(run.ranks.begin(), run.ranks.end(), [&](const model::RankTrace& other) {
    return other.rank == trace.rank && other.window != trace.window;
  });
  plan.process = {ids->process_id(rank_index), static_cast<int32_t>(rank_index), ProcessName(trace, several_windows)};
  // Windows of a rank stand together, ranks in order.
  plan.process.order =
      static_cast<int32_t>(std::count_if(run.ranks.begin(), run.ranks.end(), [&](const model::RankTrace& other) {
        return std::pair(other.rank, other.window) < std::pair(trace.rank, trace.window);
      }));

  int32_t order = 0;
  const auto next_track = [&](std::string name) {
    return SliceTrack{plan.process.process_id, ids->next_thread_id(), order++, std::move(name)};
  };
  const auto level_name = [](const std::string& name, size_t level) {
    return level == 0 ? name : fmt::format("{} · overlap {}", name, level);
  };

  for (const model::Step& step : selection.rank(rank_index).steps) {
    plan.steps.start_ns.push_back(step.start_ns);
    plan.steps.duration_ns.push_back(step.end_ns - step.start_ns);
    plan.steps.name.push_back(NameId{static_cast<uint32_t>(plan.step_numbers.size())});
    plan.step_numbers.push_back(step.number);
  }
  plan.step_levels = FindNestingLevels(plan.steps);
  for (size_t level = 0; level < plan.step_levels.level_count && !plan.steps.empty(); ++level) {
    plan.step_tracks.push_back(next_track(level_name("steps", level)));
  }

  PlanRequests(trace, rank_index, selection, &plan);
  for (size_t level = 0; level < plan.request_levels.level_count && !plan.requests.empty(); ++level) {
    plan.request_tracks.push_back(next_track(level_name("requests", level)));
  }

  std::vector<size_t> track_order(trace.tracks.size());
  for (size_t t = 0; t < track_order.size(); ++t) track_order[t] = t;
  std::sort(track_order.begin(), track_order.end(),
            [&](size_t a, size_t b) { return OrderKey(trace.tracks[a]) < OrderKey(trace.tracks[b]); });
  std::map<int64_t, uint64_t> cpu_processes;
  for (const model::Track& track : trace.tracks) {
    if (track.lane == Lane::kOperators || track.lane == Lane::kRuntime || track.lane == Lane::kPython)
      cpu_processes[track.process_id] += track.events.size();
  }
  for (const auto& [process_id, count] : cpu_processes) {
    if (plan.real_process_id == 0 || count > cpu_processes[plan.real_process_id]) plan.real_process_id = process_id;
  }
  const bool several_devices = DevicesWithEvents(trace).size() > 1;
  for (const size_t t : track_order) {
    const model::Track& track = trace.tracks[t];
    uint64_t written = 0;
    for (const int64_t start_ns : track.events.start_ns) {
      if (selection.Contains(rank_index, track.lane, start_ns)) ++written;
    }
    plan.slice_count += written;
    plan.left_out_count += track.events.size() - written;
    if (written == 0) continue;
    PlannedTrack planned;
    planned.track_idx = t;
    planned.levels = FindNestingLevels(track.events);
    const std::string name = TrackName(run, track, several_devices, cpu_processes.size());
    for (size_t level = 0; level < planned.levels.level_count; ++level) {
      planned.slice_tracks.push_back(next_track(level_name(name, level)));
    }
    plan.tracks.push_back(std::move(planned));
  }
  const auto& memory_ns = trace.memory.time_ns;
  plan.has_memory = std::any_of(memory_ns.begin(), memory_ns.end(), [&](int64_t time_ns) {
    return selection.Contains(rank_index, Lane::kOperators, time_ns);
  });
  if (plan.has_memory) plan.memory_track = next_track("memory");
  return plan;
}

}  // namespace lockstep::timeline
