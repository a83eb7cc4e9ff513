#include "generator/truth.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "generator/collective_names.h"
#include "generator/job_clock.h"

namespace lockstep::tracegen {
namespace {

enum Class : int { kCompute, kCommunication, kMemory };

template <typename T>
std::string List(const std::vector<T>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

const char* SlowByName(SlowBy by) {
  switch (by) {
    case SlowBy::kKernel: return "kernel";
    case SlowBy::kLoader: return "loader";
    case SlowBy::kHost: return "host";
    case SlowBy::kOperator: return "operator";
    case SlowBy::kCollector: return "gc";
    case SlowBy::kAllocator: return "allocator";
    case SlowBy::kCheckpoint: return "checkpoint";
    case SlowBy::kLaunch: return "launch";
    case SlowBy::kCopy: return "copy";
    case SlowBy::kUnrecorded: return "unrecorded";
    case SlowBy::kLink: return "link";
  }
  return "";
}

std::string RankJson(const TraceSpec& spec, const JobLog& job, int32_t rank, const RankTruth& truth) {
  // The clock of rank 0 is the reference; with drift the difference is given at both ends of the window.
  const auto difference = [&](int64_t true_ns) {
    return RankClock(spec, rank, job.start_ns, true_ns) - RankClock(spec, 0, job.start_ns, true_ns);
  };
  std::string text = fmt::format(
      R"(    {{"rank": {}, "file": "{}", "host": "{}", "json_bytes": {}, "event_count": {}, "complete_count": {},)"
      R"( "offset_start_ns": {}, "offset_end_ns": {}, "drift_ppm": {},)",
      rank, truth.file, HostName(spec, rank), truth.written.json_bytes, truth.written.event_count,
      truth.written.complete_count, difference(job.start_ns), difference(job.end_ns),
      spec.DriftOf(rank) - spec.DriftOf(0));
  text += fmt::format(
      "\n     \"device\": {{\"start_ns\": {}, \"span_ns\": {}, \"busy_ns\": {}, \"compute_ns\": {}, "
      "\"communication_ns\": {}, "
      "\"overlapped_communication_ns\": {}, \"exposed_communication_ns\": {}, \"memory_ns\": {}, \"idle_ns\": {}, "
      "\"kernel_count\": {}, \"collective_count\": {}}},",
      truth.device.start_ns, truth.device.span_ns, truth.device.busy_ns, truth.device.compute_ns,
      truth.device.communication_ns, truth.device.overlapped_ns,
      truth.device.communication_ns - truth.device.overlapped_ns, truth.device.memory_ns,
      truth.device.span_ns - truth.device.busy_ns, truth.device.kernel_count, truth.device.collective_count);
  text += "\n     \"idle\": [";
  bool first = true;
  for (const auto& [stream, idle] : truth.idle) {
    text += fmt::format("{}{{\"stream\": {}, \"host_wait_ns\": {}, \"kernel_wait_ns\": {}, \"other_ns\": {}}}",
                        first ? "" : ", ", stream, idle.host_wait_ns, idle.kernel_wait_ns, idle.other_ns);
    first = false;
  }
  return text + "]}";
}

}  // namespace

DeviceTruth MeasureDevice(const std::vector<LogEvent>& events, size_t count) {
  struct Edge {
    int64_t time_ns;
    int kind;
    int change;
  };
  DeviceTruth truth;
  std::vector<Edge> edges;
  for (size_t row = 0; row < count; ++row) {
    const LogEvent& event = events[row];
    if (!event.OnDevice()) continue;
    const Class kind = event.kind != EventKind::kKernel ? kMemory : (event.collective != 0 ? kCommunication : kCompute);
    edges.push_back({event.start_ns, kind, 1});
    edges.push_back({event.end_ns(), kind, -1});
    if (event.kind == EventKind::kKernel) ++truth.kernel_count;
    if (event.collective != 0) ++truth.collective_count;
  }
  if (edges.empty()) return truth;
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.time_ns < b.time_ns; });
  int active[3] = {0, 0, 0};
  for (size_t i = 0; i < edges.size(); ++i) {
    active[edges[i].kind] += edges[i].change;
    if (i + 1 == edges.size()) break;
    const int64_t length_ns = edges[i + 1].time_ns - edges[i].time_ns;
    if (active[0] + active[1] + active[2] > 0) truth.busy_ns += length_ns;
    if (active[kCompute] > 0) truth.compute_ns += length_ns;
    if (active[kCommunication] > 0) truth.communication_ns += length_ns;
    if (active[kCommunication] > 0 && active[kCompute] > 0) truth.overlapped_ns += length_ns;
    if (active[kMemory] > 0) truth.memory_ns += length_ns;
  }
  truth.start_ns = edges.front().time_ns;
  truth.span_ns = edges.back().time_ns - edges.front().time_ns;
  return truth;
}

std::map<int, StreamIdleTruth> MeasureIdle(const std::vector<LogEvent>& events, size_t count) {
  constexpr int64_t kThresholdNs = 30'000;
  std::unordered_map<uint32_t, int64_t> launched;
  std::map<int, std::vector<const LogEvent*>> streams;
  for (size_t row = 0; row < count; ++row) {
    const LogEvent& event = events[row];
    if (event.kind == EventKind::kRuntime) launched[event.correlation] = event.start_ns;
    if (event.OnDevice()) streams[event.lane].push_back(&event);
  }
  std::map<int, StreamIdleTruth> result;
  for (auto& [stream, rows] : streams) {
    std::sort(rows.begin(), rows.end(), [](const LogEvent* a, const LogEvent* b) { return a->start_ns < b->start_ns; });
    StreamIdleTruth& idle = result[stream];
    for (size_t i = 1; i < rows.size(); ++i) {
      const int64_t previous_end_ns = rows[i - 1]->end_ns();
      const int64_t gap_ns = rows[i]->start_ns - previous_end_ns;
      if (gap_ns <= 0) continue;
      const auto call = launched.find(rows[i]->correlation);
      if (call != launched.end() && call->second > previous_end_ns) {
        idle.host_wait_ns += gap_ns;
      } else if (gap_ns < kThresholdNs) {
        idle.kernel_wait_ns += gap_ns;
      } else {
        idle.other_ns += gap_ns;
      }
    }
  }
  return result;
}

std::string TruthJson(const TraceSpec& spec, const JobLog& job, int32_t step_count,
                      const std::vector<RankTruth>& ranks) {
  std::string text = fmt::format(
      "{{\n  \"schema\": \"lockstep.tracegen-truth/1\",\n  \"seed\": {}, \"rank_count\": {}, \"step_count\": {}, "
      "\"span_ns\": {},\n  \"ranks\": [\n",
      spec.seed, spec.rank_count, step_count, job.end_ns - job.start_ns);
  for (size_t r = 0; r < ranks.size(); ++r) {
    text += RankJson(spec, job, static_cast<int32_t>(r), ranks[r]);
    text += r + 1 < ranks.size() ? ",\n" : "\n";
  }
  text += "  ],\n  \"stragglers\": [";
  for (size_t i = 0; i < spec.stragglers.size(); ++i) {
    const PlantedStraggler& planted = spec.stragglers[i];
    text += fmt::format("{}{{\"rank\": {}, \"delay_ns\": {}, \"by\": \"{}\", \"step\": {}}}", i == 0 ? "" : ", ",
                        planted.rank, planted.delay_ns, SlowByName(planted.by),
                        planted.step ? std::to_string(*planted.step) : "null");
  }
  text += "],\n  \"collectives\": [\n";
  for (size_t i = 0; i < job.collectives.size(); ++i) {
    const CollectiveLog& log = job.collectives[i];
    const int64_t last_ns = *std::max_element(log.arrival_ns.begin(), log.arrival_ns.end());
    std::vector<int64_t> arrivals;
    std::vector<int64_t> waits;
    std::vector<int64_t> durations;
    for (size_t member = 0; member < log.ranks.size(); ++member) {
      arrivals.push_back(log.arrival_ns[member] - job.start_ns);
      waits.push_back(last_ns - log.arrival_ns[member]);
      durations.push_back(log.end_ns[member] - log.arrival_ns[member]);
    }
    text += fmt::format(
        "    {{\"group\": \"{}\", \"sequence\": {}, \"name\": \"{}\", \"bytes\": {}, \"ranks\": {}, "
        "\"arrival_ns\": {}, \"wait_ns\": {}, \"duration_ns\": {}}}{}\n",
        job.groups[log.group].name, log.sequence, NamesOf(log.name).plain,
        4 * std::max(log.in_elements, log.out_elements), List(log.ranks), List(arrivals), List(waits), List(durations),
        i + 1 < job.collectives.size() ? "," : "");
  }
  return text + "  ]\n}\n";
}

}  // namespace lockstep::tracegen
