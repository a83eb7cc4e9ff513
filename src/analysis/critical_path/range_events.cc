#include "analysis/critical_path/range_events.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace lockstep::analysis {
namespace {

using model::Category;
using model::Lane;

class Collector {
 public:
  explicit Collector(const RankContext& context) : context_(context), trace_(context.trace()) {}

  std::optional<RangeEvents> Run(const std::string& range, int64_t instance) {
    if (!FindWindow(range, instance)) return std::nullopt;
    CollectHost();
    CollectDevice();
    CollectSyncs();
    return std::move(found_);
  }

 private:
  using Place = std::pair<int64_t, int64_t>;  ///< (process, thread) or (device, stream).

  bool FindWindow(const std::string& range, int64_t instance) {
    if (range.empty()) {
      if (!trace_.first_ns || !trace_.last_ns) return false;
      found_.start_ns = *trace_.first_ns;
      found_.end_ns = *trace_.last_ns;
      return true;
    }
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (const model::Track& track : trace_.tracks) {
      if (track.lane != Lane::kOperators) continue;
      for (size_t row = 0; row < track.events.size(); ++row) {
        if (context_.names()[track.events.name[row]].find(range) == std::string_view::npos) continue;
        ranges.emplace_back(track.events.start_ns[row], track.events.end_ns(row));
      }
    }
    std::stable_sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    if (instance < 0 || static_cast<size_t>(instance) >= ranges.size()) return false;
    std::tie(found_.start_ns, found_.end_ns) = ranges[static_cast<size_t>(instance)];
    return true;
  }

  void CollectHost() {
    std::map<Place, std::vector<uint32_t>> threads;  // tracks: operators before calls
    for (size_t t = 0; t < trace_.tracks.size(); ++t) {
      const model::Track& track = trace_.tracks[t];
      if (track.lane == Lane::kOperators || track.lane == Lane::kRuntime)
        threads[{track.process_id, track.thread_id}].push_back(static_cast<uint32_t>(t));
    }
    for (const auto& [place, tracks] : threads) {
      const auto first = static_cast<uint32_t>(found_.events.size());
      std::vector<std::pair<RangeEvent, LaunchRef>> rows;
      for (const uint32_t t : tracks) {
        const model::EventColumns& events = trace_.tracks[t].events;
        for (size_t row = 0; row < events.size(); ++row) {
          if (events.category[row] == Category::kUserAnnotation || events.duration_ns[row] == 0) continue;
          RangeEvent event;
          event.start_ns = events.start_ns[row];
          event.end_ns = events.end_ns(row);
          event.name = events.name[row];
          event.category = events.category[row];
          event.in_range = event.start_ns >= found_.start_ns && event.start_ns <= found_.end_ns;
          event.process_id = place.first;
          event.thread_id = place.second;
          if (!events.correlation.empty()) event.correlation = events.correlation[row];
          rows.emplace_back(event, LaunchRef{t, static_cast<uint32_t>(row)});
        }
      }
      std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
        if (a.first.start_ns != b.first.start_ns) return a.first.start_ns < b.first.start_ns;
        return a.first.end_ns > b.first.end_ns;
      });
      for (const auto& [event, row] : rows) {
        const auto index = static_cast<uint32_t>(found_.events.size());
        if (trace_.tracks[row.track].lane == Lane::kRuntime) {
          call_of_row_[(uint64_t{row.track} << 32) | row.row] = index;
          if (event.correlation != 0) call_of_correlation_.try_emplace(event.correlation, index);
        }
        found_.events.push_back(event);
      }
      found_.threads.emplace_back(first, static_cast<uint32_t>(found_.events.size()));
    }
    found_.first_device = static_cast<uint32_t>(found_.events.size());
  }

  void CollectDevice() {
    for (size_t t = 0; t < trace_.tracks.size(); ++t) {
      const model::Track& track = trace_.tracks[t];
      if (track.lane != Lane::kDevice) continue;
      for (size_t row = 0; row < track.events.size(); ++row) {
        const LaunchRef launch = context_.launches[t][row];
        if (!launch.found()) continue;
        const auto call = call_of_row_.find((uint64_t{launch.track} << 32) | launch.row);
        if (call == call_of_row_.end()) continue;
        RangeEvent event;
        event.start_ns = track.events.start_ns[row];
        event.end_ns = track.events.end_ns(row);
        event.name = track.events.name[row];
        event.category = track.events.category[row];
        event.process_id = track.process_id;
        event.thread_id = track.thread_id;
        event.launch = call->second;
        event.in_range = found_.events[call->second].in_range;
        found_.events[call->second].launched = static_cast<uint32_t>(found_.events.size());
        launches_[{track.process_id, track.thread_id}].push_back(call->second);
        found_.events.push_back(event);
      }
    }
    for (auto& [place, calls] : launches_) {
      std::stable_sort(calls.begin(), calls.end(), [this](uint32_t a, uint32_t b) { return StartOf(a) < StartOf(b); });
    }
  }

  int64_t StartOf(uint32_t event) const { return found_.events[event].start_ns; }

  uint32_t CallOf(uint32_t correlation) const {
    const auto call = call_of_correlation_.find(correlation);
    return correlation == 0 || call == call_of_correlation_.end() ? kNoRangeEvent : call->second;
  }

  /// Last device event of the stream that any thread launched before the record call.
  uint32_t SourceOf(const model::SyncRecord& record) const {
    const uint32_t recorded = CallOf(record.event_record_correlation);
    if (recorded == kNoRangeEvent || !record.event_stream) return kNoRangeEvent;
    const auto calls = launches_.find({record.device, *record.event_stream});
    if (calls == launches_.end()) return kNoRangeEvent;
    const auto after = std::partition_point(calls->second.begin(), calls->second.end(),
                                            [&](uint32_t call) { return StartOf(call) < StartOf(recorded); });
    return after == calls->second.begin() ? kNoRangeEvent : found_.events[*(after - 1)].launched;
  }

  /// Next device event that the waiting call's thread launches on the waiting stream.
  uint32_t TargetOf(const model::SyncRecord& record, uint32_t call) const {
    if (call == kNoRangeEvent || !record.stream) return kNoRangeEvent;
    const auto calls = launches_.find({record.device, *record.stream});
    if (calls == launches_.end()) return kNoRangeEvent;
    const RangeEvent& waits = found_.events[call];
    for (auto next = std::partition_point(calls->second.begin(), calls->second.end(),
                                          [&](uint32_t other) { return StartOf(other) <= waits.start_ns; });
         next != calls->second.end(); ++next) {
      const RangeEvent& launch = found_.events[*next];
      if (launch.process_id == waits.process_id && launch.thread_id == waits.thread_id) return launch.launched;
    }
    return kNoRangeEvent;
  }

  void CollectSyncs() {
    for (const model::SyncRecord& record : trace_.synchronisations) {
      if (record.kind == SyncKind::kOther) continue;
      RangeSync sync;
      sync.kind = record.kind;
      sync.end_ns = record.start_ns + record.duration_ns;
      sync.device = record.device;
      sync.stream = record.stream;
      sync.call = CallOf(record.correlation);
      if (sync.call == kNoRangeEvent) continue;
      const bool in_range = record.kind == SyncKind::kStream || record.kind == SyncKind::kStreamWaitEvent
                                ? found_.events[sync.call].in_range
                                : record.start_ns >= found_.start_ns && record.start_ns <= found_.end_ns &&
                                      record.duration_ns > 0 && found_.events[sync.call].in_range;
      if (!in_range) continue;
      if (record.kind == SyncKind::kEvent || record.kind == SyncKind::kStreamWaitEvent) sync.source = SourceOf(record);
      if (record.kind == SyncKind::kStreamWaitEvent) sync.target = TargetOf(record, sync.call);
      found_.syncs.push_back(sync);
    }
  }

  const RankContext& context_;
  const model::RankTrace& trace_;
  RangeEvents found_;
  std::unordered_map<uint64_t, uint32_t> call_of_row_;          // (track, row)
  std::unordered_map<uint32_t, uint32_t> call_of_correlation_;  // the first in order of threads
  std::map<Place, std::vector<uint32_t>> launches_;             // launch calls by stream, by start
};

}  // namespace

std::optional<RangeEvents> CollectRangeEvents(const RankContext& context, const std::string& range, int64_t instance) {
  return Collector(context).Run(range, instance);
}

}  // namespace lockstep::analysis
