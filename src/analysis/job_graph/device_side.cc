#include "analysis/job_graph/device_side.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>

#include "analysis/job_graph/chain.h"
#include "analysis/job_graph/sync_call.h"

namespace lockstep::analysis {
namespace {

using graph::EdgeKind;
using model::Category;
using model::Lane;

constexpr uint32_t kNoEvent = UINT32_MAX;
constexpr uint32_t kNoNode = UINT32_MAX;
/// Of kernels whose launch did not decide when they start, every so manieth keeps its launch as a dependency.
constexpr uint32_t kLaunchesPerAnchor = 32;
/// A start this soon after the end of another stream's event is taken to have waited for it.
constexpr int64_t kHandOverNs = 20'000;
/// A gap within a stream up to here is the device's; beyond it nothing recorded explains the delay.
constexpr int64_t kGapNs = 10'000;
/// A launch takes so long at most; beyond it nothing recorded explains the delay.
constexpr int64_t kLaunchNs = 1'000'000;

struct DeviceEvent {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::optional<int64_t> launch_ns = {};  ///< Start of the launch call.
  HostThread launch_thread;
  NameId name;
  uint32_t stream = 0;  ///< Index of the stream.
  uint32_t step = 0;
  EdgeKind kind = EdgeKind::kCompute;
  bool is_communication = false;
  bool needs_end = false;
  uint32_t end_node = kNoNode;
  uint32_t given_before = kNoEvent;  ///< Communication: the last other work that the device was given before it.
};

struct DeviceStream {
  int64_t device = 0;
  bool has_communication = false;
  uint32_t first = 0;  ///< Its events lie side by side, by start.
  uint32_t end = 0;
};

class DeviceSide {
 public:
  DeviceSide(const RankContext& context, std::vector<RankStepGraph>* steps, std::vector<HostAnchor>* anchors)
      : context_(context), steps_(*steps), anchors_(*anchors) {}

  void Run() {
    Collect();
    if (events_.empty()) return;
    FindGivenBefore();
    FindWaits();
    Link();
    for (Wait& wait : waits_) AddWait(wait);
  }

 private:
  struct Wait {
    HostThread thread;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    uint32_t step = 0;
    std::vector<uint32_t> sources;  ///< Events.
  };

  void Collect() {
    const auto& tracks = context_.trace().tracks;
    for (size_t t = 0; t < tracks.size(); ++t) {
      if (tracks[t].lane != Lane::kDevice) continue;
      const model::EventColumns& rows = tracks[t].events;
      DeviceStream stream;
      stream.device = tracks[t].process_id;
      stream.first = static_cast<uint32_t>(events_.size());
      size_t step = 0;
      for (size_t row = 0; row < rows.size(); ++row) {
        if (!context_.InScope(t, row)) continue;
        DeviceEvent event;
        event.start_ns = rows.start_ns[row];
        event.end_ns = rows.end_ns(row);
        while (step < steps_.size() && steps_[step].end_ns <= event.start_ns) ++step;
        if (step == steps_.size() || event.start_ns < steps_[step].start_ns) continue;
        event.step = static_cast<uint32_t>(step);
        event.name = rows.name[row];
        event.stream = static_cast<uint32_t>(streams_.size());
        event.is_communication = context_.shared->is_communication[event.name.value];
        event.kind = rows.category[row] == Category::kKernel ? EdgeKind::kCompute : EdgeKind::kCopy;
        if (event.is_communication) event.kind = EdgeKind::kTransfer;
        stream.has_communication = stream.has_communication || event.is_communication;
        const LaunchRef launch = context_.launches[t][row];
        if (launch.found()) {
          const model::Track& calls = tracks[launch.track];
          event.launch_ns = calls.events.start_ns[launch.row];
          event.launch_thread = {calls.process_id, calls.thread_id};
        }
        events_.push_back(event);
      }
      stream.end = static_cast<uint32_t>(events_.size());
      if (stream.end > stream.first) streams_.push_back(stream);
    }
  }

  /// The last event of `stream` that was launched before `time_ns`; streams work in the order of launches.
  uint32_t LastGiven(const DeviceStream& stream, int64_t time_ns) const {
    const auto first = events_.begin() + stream.first;
    const auto end = events_.begin() + stream.end;
    const auto after = std::partition_point(
        first, end, [time_ns](const DeviceEvent& event) { return event.launch_ns.value_or(event.start_ns) < time_ns; });
    return after == first ? kNoEvent : static_cast<uint32_t>(after - events_.begin()) - 1;
  }

  void FindGivenBefore() {
    for (DeviceEvent& event : events_) {
      if (!event.is_communication || !event.launch_ns) continue;
      for (size_t s = 0; s < streams_.size(); ++s) {
        if (s == event.stream || streams_[s].device != streams_[event.stream].device) continue;
        if (streams_[s].has_communication) continue;
        const uint32_t given = LastGiven(streams_[s], *event.launch_ns);
        if (given == kNoEvent || events_[given].step != event.step || events_[given].end_ns > event.start_ns) continue;
        if (event.given_before == kNoEvent || events_[given].end_ns > events_[event.given_before].end_ns)
          event.given_before = given;
      }
      if (event.given_before != kNoEvent) events_[event.given_before].needs_end = true;
    }
  }

  void FindWaits() {
    std::vector<SyncCall> calls(context_.names().size(), SyncCall::kNone);
    std::vector<bool> known(calls.size(), false);
    for (const model::Track& track : context_.trace().tracks) {
      if (track.lane != Lane::kRuntime) continue;
      for (size_t row = 0; row < track.events.size(); ++row) {
        const NameId name = track.events.name[row];
        if (!known[name.value]) {
          known[name.value] = true;
          calls[name.value] = SyncCallOf(context_.names()[name]);
        }
        if (calls[name.value] == SyncCall::kNone) continue;
        Wait wait;
        wait.thread = {track.process_id, track.thread_id};
        wait.start_ns = track.events.start_ns[row];
        wait.end_ns = track.events.end_ns(row);
        const size_t step = StepAt(steps_, wait.end_ns);
        if (step == steps_.size()) continue;
        wait.step = static_cast<uint32_t>(step);
        FindSources(calls[name.value], &wait);
        if (wait.sources.empty()) continue;
        for (const uint32_t source : wait.sources) events_[source].needs_end = true;
        waits_.push_back(std::move(wait));
      }
    }
  }

  void FindSources(SyncCall call, Wait* wait) const {
    const auto usable = [&](uint32_t event) {
      return event != kNoEvent && events_[event].step == wait->step &&
             events_[event].end_ns <= wait->end_ns + kHandOverNs;
    };
    uint32_t last_given = kNoEvent;  // of all streams
    uint32_t last_ended = kNoEvent;  // while the call lasted
    for (const DeviceStream& stream : streams_) {
      const uint32_t given = LastGiven(stream, call == SyncCall::kCopy ? wait->start_ns + 1 : wait->start_ns);
      if (!usable(given)) continue;
      if (call == SyncCall::kDevice) wait->sources.push_back(given);
      if (last_given == kNoEvent || events_[given].launch_ns > events_[last_given].launch_ns) last_given = given;
      if (events_[given].end_ns > wait->start_ns &&
          (last_ended == kNoEvent || events_[given].end_ns > events_[last_ended].end_ns)) {
        last_ended = given;
      }
    }
    if (call == SyncCall::kStream && last_given != kNoEvent) wait->sources.push_back(last_given);
    if (call == SyncCall::kEvent && last_ended != kNoEvent) wait->sources.push_back(last_ended);
    // Only where the copy is this call's own and was done before it returned.
    if (call == SyncCall::kCopy && last_given != kNoEvent && events_[last_given].launch_ns == wait->start_ns &&
        events_[last_given].end_ns <= wait->end_ns) {
      wait->sources.push_back(last_given);
    }
  }

  /// The event of another stream of the same device that ended last in (after, event's start].
  uint32_t EndedJustBefore(const DeviceEvent& event, int64_t after_ns) const {
    uint32_t found = kNoEvent;
    for (size_t s = 0; s < streams_.size(); ++s) {
      if (s == event.stream || streams_[s].device != streams_[event.stream].device) continue;
      const auto first = events_.begin() + streams_[s].first;
      const auto end = events_.begin() + streams_[s].end;
      const auto next =
          std::partition_point(first, end, [&](const DeviceEvent& other) { return other.end_ns <= event.start_ns; });
      if (next == first) continue;
      const uint32_t candidate = static_cast<uint32_t>(next - events_.begin()) - 1;
      const int64_t end_ns = events_[candidate].end_ns;
      if (events_[candidate].step != event.step || end_ns <= after_ns || event.start_ns - end_ns > kHandOverNs)
        continue;
      if (found == kNoEvent || end_ns > events_[found].end_ns) found = candidate;
    }
    return found;
  }

  /// What decides when an event starts, and what else it waits for.
  struct Start {
    enum class Binding : uint8_t { kStream, kLaunch, kEvent, kUnknown } binding = Binding::kUnknown;
    uint32_t event = kNoEvent;  ///< kEvent: the other stream's.
    int64_t met_ns = 0;         ///< When the deciding dependency was met.
  };

  Start Decide(const DeviceEvent& event, uint32_t previous) const {
    Start start;
    start.met_ns = steps_[event.step].start_ns;
    if (event.launch_ns && *event.launch_ns >= start.met_ns && *event.launch_ns <= event.start_ns) {
      start = {Start::Binding::kLaunch, kNoEvent, *event.launch_ns};
    }
    if (previous != kNoEvent && events_[previous].end_ns >= start.met_ns) {
      start = {Start::Binding::kStream, kNoEvent, events_[previous].end_ns};
    }
    if (event.given_before != kNoEvent && events_[event.given_before].end_ns > start.met_ns) {
      start = {Start::Binding::kEvent, event.given_before, events_[event.given_before].end_ns};
    }
    if (event.start_ns - start.met_ns > kGapNs) {
      const uint32_t other = EndedJustBefore(event, start.met_ns);
      if (other != kNoEvent) start = {Start::Binding::kEvent, other, events_[other].end_ns};
    }
    return start;
  }

  void Link() {
    starts_.resize(events_.size());
    previous_.assign(events_.size(), kNoEvent);
    for (const DeviceStream& stream : streams_) {
      for (uint32_t i = stream.first; i < stream.end; ++i) {
        const bool follows =
            i > stream.first && events_[i - 1].step == events_[i].step && events_[i - 1].end_ns <= events_[i].start_ns;
        if (follows) previous_[i] = i - 1;
        starts_[i] = Decide(events_[i], previous_[i]);
        if (starts_[i].event != kNoEvent) events_[starts_[i].event].needs_end = true;
      }
    }
    Chain chain(context_.names().size());
    for (const DeviceStream& stream : streams_) {
      uint32_t since_anchor = 0;
      for (uint32_t i = stream.first; i < stream.end; ++i) LinkEvent(i, &since_anchor, &chain);
      EndChain(events_[stream.end - 1], &chain);
    }
    for (const auto& [event, node] : cross_edges_) {
      const DeviceEvent& from = events_[event];
      steps_[from.step].edges.push_back({from.end_node, node.node, node.weight_ns, NameId{}, node.kind});
    }
  }

  void LinkEvent(uint32_t i, uint32_t* since_anchor, Chain* chain) {
    DeviceEvent& event = events_[i];
    RankStepGraph& step = steps_[event.step];
    const Start& start = starts_[i];
    const uint32_t previous = previous_[i];
    const bool decided_by_stream = start.binding == Start::Binding::kStream;
    const int64_t delay_ns = event.start_ns - start.met_ns;
    // Nodes of one graph launch hang on the first of them.
    const bool own_launch = event.launch_ns && *event.launch_ns >= step.start_ns &&
                            *event.launch_ns <= event.start_ns &&
                            (previous == kNoEvent || events_[previous].launch_ns != event.launch_ns);
    const bool anchored = own_launch && (start.binding == Start::Binding::kLaunch || event.is_communication ||
                                         previous == kNoEvent || ++*since_anchor >= kLaunchesPerAnchor);
    if (previous == kNoEvent && chain->active()) EndChain(events_[i - 1], chain);
    const bool needs_start = previous == kNoEvent || anchored || event.is_communication || start.event != kNoEvent ||
                             event.given_before != kNoEvent;
    if (decided_by_stream) chain->Add(delay_ns > kGapNs ? EdgeKind::kDelay : EdgeKind::kKernelGap, NameId{}, delay_ns);
    uint32_t start_node = kNoNode;
    if (needs_start) {
      start_node = step.node_count++;
      if (previous != kNoEvent) {
        chain->FlushTo(start_node);
      } else {
        chain->Begin(&step, start_node);
      }
      AddStartEdges(event, start, start_node, anchored, delay_ns);
      if (anchored) *since_anchor = 0;
    }
    if (event.is_communication) {
      event.end_node = step.node_count++;
      step.collectives.push_back({event.start_ns, event.end_ns, start_node, event.end_node, event.name});
      chain->Begin(&step, event.end_node);
      return;
    }
    chain->Add(event.kind, event.name, event.end_ns - event.start_ns);
    if (event.needs_end) event.end_node = chain->Flush();
  }

  /// What runs on beyond the window's end does not hold the step up.
  void EndChain(const DeviceEvent& last, Chain* chain) {
    if (last.end_ns <= steps_[last.step].end_ns) chain->FlushTo(RankStepGraph::kEnd);
    chain->Stop();
  }

  void AddStartEdges(const DeviceEvent& event, const Start& start, uint32_t node, bool anchored, int64_t delay_ns) {
    RankStepGraph& step = steps_[event.step];
    if (start.binding == Start::Binding::kUnknown)
      step.edges.push_back({RankStepGraph::kStart, node, delay_ns, NameId{}, EdgeKind::kDelay});
    if (anchored) {
      const bool decides = start.binding == Start::Binding::kLaunch;
      HostAnchor anchor;
      anchor.thread = event.launch_thread;
      anchor.time_ns = *event.launch_ns;
      anchor.step = event.step;
      anchor.node = step.node_count++;
      anchors_.push_back(anchor);
      const EdgeKind kind = decides && delay_ns > kLaunchNs ? EdgeKind::kDelay : EdgeKind::kLaunch;
      step.edges.push_back({anchor.node, node, decides ? delay_ns : 0, NameId{}, kind});
    }
    if (start.event != kNoEvent) cross_edges_.push_back({start.event, {node, delay_ns, EdgeKind::kKernelGap}});
    if (event.given_before != kNoEvent && event.given_before != start.event)
      cross_edges_.push_back({event.given_before, {node, 0, EdgeKind::kOrder}});
  }

  void AddWait(const Wait& wait) {
    HostAnchor anchor;
    anchor.kind = HostAnchor::Kind::kWait;
    anchor.thread = wait.thread;
    anchor.time_ns = std::max(wait.start_ns, steps_[wait.step].start_ns);
    anchor.end_ns = wait.end_ns;
    anchor.step = wait.step;
    anchor.wait_end_ns = anchor.time_ns;
    for (const uint32_t source : wait.sources) {
      const int64_t end_ns = events_[source].end_ns;
      anchor.wait_end_ns = std::max(anchor.wait_end_ns, std::min(end_ns, wait.end_ns));
    }
    for (const uint32_t source : wait.sources) {
      anchor.sources.push_back(
          {events_[source].end_node, std::max<int64_t>(0, events_[source].end_ns - anchor.wait_end_ns)});
    }
    anchors_.push_back(std::move(anchor));
  }

  struct CrossEdge {
    uint32_t node = 0;
    int64_t weight_ns = 0;
    EdgeKind kind = EdgeKind::kOrder;
  };

  const RankContext& context_;
  std::vector<RankStepGraph>& steps_;
  std::vector<HostAnchor>& anchors_;
  std::vector<DeviceEvent> events_;  // by stream, then by start
  std::vector<DeviceStream> streams_;
  std::vector<Wait> waits_;
  std::vector<Start> starts_;       // by event
  std::vector<uint32_t> previous_;  // by event: the one before it in its stream, kNoEvent at a chain's start
  std::vector<std::pair<uint32_t, CrossEdge>> cross_edges_;  // from the end of an event
};

}  // namespace

size_t StepAt(const std::vector<RankStepGraph>& steps, int64_t time_ns) {
  const auto after = std::upper_bound(steps.begin(), steps.end(), time_ns,
                                      [](int64_t time, const RankStepGraph& step) { return time < step.start_ns; });
  if (after == steps.begin()) return steps.size();
  const size_t index = static_cast<size_t>(after - steps.begin()) - 1;
  return time_ns <= steps[index].end_ns ? index : steps.size();
}

void AddDeviceSide(const RankContext& context, std::vector<RankStepGraph>* steps, std::vector<HostAnchor>* anchors) {
  DeviceSide(context, steps, anchors).Run();
}

}  // namespace lockstep::analysis
