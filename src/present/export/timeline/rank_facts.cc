#include <cmath>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "present/export/timeline/json_text.h"
#include "present/export/timeline/rank_plan.h"

namespace lockstep::timeline {
namespace {

/// Members of objects; texts are written as in the events, absent values left out.
class FactsWriter : public JsonInMemory<FactsWriter> {
 public:
  using JsonCalls::Int;
  FactsWriter& Int(std::string_view key, int64_t value) { return Key(key).Int(value); }
  template <typename Value>
  FactsWriter& Int(std::string_view key, const std::optional<Value>& value) {
    return value ? Int(key, static_cast<int64_t>(*value)) : *this;
  }
  FactsWriter& Bool(std::string_view key, bool value) { return Key(key).JsonCalls::Bool(value); }
  FactsWriter& Double(std::string_view key, double value) {
    return Key(key).JsonCalls::Double(std::isfinite(value) ? value : 0.0);
  }
  FactsWriter& Text(std::string_view key, std::string_view value) {
    if (value.empty()) return *this;
    std::string quoted;
    AppendQuoted(value, &quoted);
    return Key(key).Raw(quoted);
  }
};

void WriteClock(const model::ClockMap& clock, FactsWriter* out) {
  out->Key("clock").StartObject().Text("basis", ClockBasisName(clock.basis)).Int("offset_ns", clock.offset_ns);
  out->Int("reference_ns", clock.reference_ns).Double("drift_ppm", clock.drift_ppm);
  out->Int("uncertainty_ns", clock.uncertainty_ns).Int("sample_count", int64_t{clock.sample_count}).EndObject();
}

void WriteGroups(const model::RankTrace& trace, FactsWriter* out) {
  out->Key("groups").StartArray();
  for (const model::ProcessGroup& group : trace.groups) {
    out->StartObject().Text("name", group.name).Text("description", group.description).Text("backend", group.backend);
    out->Int("size", group.size).Key("ranks").StartArray();
    for (const int32_t rank : group.ranks) out->Int(rank);
    out->EndArray().EndObject();
  }
  out->EndArray();
}

void WriteDevices(const model::RankTrace& trace, FactsWriter* out) {
  out->Key("devices").StartArray();
  for (const model::Device& device : trace.devices) {
    out->StartObject().Int("ordinal", int64_t{device.ordinal.value}).Text("name", device.name);
    out->Int("memory_bytes", device.memory_bytes).Int("multiprocessor_count", device.multiprocessor_count).EndObject();
  }
  out->EndArray();
}

void WriteTracks(const model::Run& run, const model::RankTrace& trace, const RankPlan& plan, FactsWriter* out) {
  out->Key("tracks").StartArray();
  for (const SliceTrack& track : plan.step_tracks)
    out->StartObject().Int("tid", int64_t{track.thread_id}).Text("lane", "steps").EndObject();
  for (const SliceTrack& track : plan.request_tracks)
    out->StartObject().Int("tid", int64_t{track.thread_id}).Text("lane", "requests").EndObject();
  if (plan.critical_path_track)
    out->StartObject()
        .Int("tid", int64_t{plan.critical_path_track->thread_id})
        .Text("lane", "critical_path")
        .EndObject();
  if (plan.log_track) out->StartObject().Int("tid", int64_t{plan.log_track->thread_id}).Text("lane", "log").EndObject();
  for (const PlannedTrack& planned : plan.tracks) {
    const model::Track& track = trace.tracks[planned.track_idx];
    for (const SliceTrack& slice_track : planned.slice_tracks) {
      out->StartObject().Int("tid", int64_t{slice_track.thread_id}).Text("lane", model::LaneName(track.lane));
      out->Int("process_id", track.process_id).Int("thread_id", track.thread_id);
      out->Text("thread_name", run.names[track.thread_name]).EndObject();
    }
  }
  if (plan.has_memory)
    out->StartObject().Int("tid", int64_t{plan.memory_track.thread_id}).Text("lane", "memory").EndObject();
  out->EndArray();
}

}  // namespace

std::string RunFacts(size_t process_count, const std::string& version, int64_t shift_ns) {
  FactsWriter out;
  out.StartObject().Text("format", "lockstep.timeline/1").Text("version", version);
  out.Int("shift_ns", shift_ns).Int("process_count", static_cast<int64_t>(process_count)).EndObject();
  return out.Take();
}

std::string ProcessFacts(const model::Run& run, size_t rank_index, const RankPlan& plan) {
  const model::RankTrace& trace = run.ranks[rank_index];
  FactsWriter out;
  out.StartObject().Int("rank", int64_t{trace.rank.value});
  out.Text("rank_source", model::RankSourceName(trace.rank_source)).Int("window", int64_t{trace.window});
  out.Int("world_size", trace.world_size).Text("host", trace.host).Text("source", trace.source);
  out.Text("backend", trace.backend).Bool("base_time_known", trace.base_time_known);
  if (plan.real_process_id != 0) out.Int("process_id", plan.real_process_id);
  // Figures of the source, where all of it is here.
  if (plan.left_out_count == 0) {
    out.Int("event_count", static_cast<int64_t>(trace.event_count));
    out.Int("json_bytes", static_cast<int64_t>(trace.json_bytes));
  }
  WriteClock(trace.clock, &out);
  WriteGroups(trace, &out);
  WriteDevices(trace, &out);
  WriteTracks(run, trace, plan, &out);
  out.EndObject();
  return out.Take();
}

}  // namespace lockstep::timeline
