#include "ingest/perfetto/trace_builder.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "ingest/torch_trace/trace_category.h"
#include "ingest/torch_trace/track_writer.h"

namespace lockstep::ingest::perfetto {
namespace {

using model::Lane;

/// One rank's trace while its tracks come in.
class RankBuilder {
 public:
  explicit RankBuilder(model::RankTrace trace) : trace_(std::move(trace)) {}

  void Add(const RawTrack& raw, int64_t process_id, int64_t thread_id, NameId thread_name) {
    for (size_t row = 0; row < raw.start_ns.size(); ++row) {
      const auto category = static_cast<model::Category>(raw.category[row]);
      TrackWriter& writer = WriterOf(LaneOf(category), process_id, thread_id, thread_name);
      writer.Add(raw.start_ns[row], raw.duration_ns[row], raw.event_name[row], category, raw.correlation[row]);
    }
    for (const RawTrack::Collective& collective : raw.collectives) {
      model::CollectiveRecord record = collective.record;
      record.duration_ns = raw.duration_ns[collective.row];
      record.process_id = process_id;
      record.thread_id = thread_id;
      trace_.collectives.push_back(record);
    }
  }

  void AddMemory(const MemoryEvent& event) { memory_.push_back(event); }

  model::RankTrace Finish(int64_t base_ns) {
    for (auto& [key, entry] : writers_) {
      model::Track track = entry.writer->Finish(base_ns);
      entry.writer.reset();
      if (track.events.empty()) continue;
      track.thread_name = entry.thread_name;
      trace_.complete_event_count += track.events.size();
      const int64_t first = track.events.start_ns[0];
      int64_t last = first;
      for (size_t i = 0; i < track.events.size(); ++i) last = std::max(last, track.events.end_ns(i));
      trace_.first_ns = std::min(trace_.first_ns.value_or(INT64_MAX), first);
      trace_.last_ns = std::max(trace_.last_ns.value_or(INT64_MIN), last);
      trace_.tracks.push_back(std::move(track));
    }
    for (model::CollectiveRecord& record : trace_.collectives) record.start_ns += base_ns;
    std::stable_sort(trace_.collectives.begin(), trace_.collectives.end(),
                     [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    std::stable_sort(memory_.begin(), memory_.end(),
                     [](const MemoryEvent& a, const MemoryEvent& b) { return a.time_ns < b.time_ns; });
    for (const MemoryEvent& event : memory_) {
      trace_.memory.time_ns.push_back(event.time_ns + base_ns);
      trace_.memory.change_bytes.push_back(event.change_bytes);
      trace_.memory.allocated_bytes.push_back(event.allocated_bytes);
      trace_.memory.reserved_bytes.push_back(event.reserved_bytes);
      trace_.memory.device.push_back(event.device);
    }
    trace_.event_count = trace_.complete_event_count + memory_.size();
    return std::move(trace_);
  }

 private:
  struct Entry {
    std::unique_ptr<TrackWriter> writer;
    NameId thread_name;
  };
  using Key = std::tuple<Lane, int64_t, int64_t>;

  TrackWriter& WriterOf(Lane lane, int64_t process_id, int64_t thread_id, NameId thread_name) {
    const Key key{lane, process_id, thread_id};
    if (last_ != nullptr && key == last_key_) return *last_;
    Entry& entry = writers_[key];
    if (entry.writer == nullptr) {
      entry.writer = std::make_unique<TrackWriter>(lane, process_id, thread_id);
      entry.thread_name = thread_name;
    }
    last_ = entry.writer.get();
    last_key_ = key;
    return *last_;
  }

  model::RankTrace trace_;
  std::map<Key, Entry> writers_;  // In the order of RankTrace::tracks.
  TrackWriter* last_ = nullptr;
  Key last_key_;
  std::vector<MemoryEvent> memory_;
};

/// The nearest process among a track's ancestors.
const RawTrack* ProcessOf(const std::map<uint64_t, const RawTrack*>& by_uuid, const RawTrack& track) {
  const RawTrack* at = &track;
  for (int depth = 0; depth < 64; ++depth) {
    if (at->is_process || at->is_thread) return at;
    const auto parent = by_uuid.find(at->parent_uuid);
    if (parent == by_uuid.end() || parent->second == at) return nullptr;
    at = parent->second;
  }
  return nullptr;
}

std::vector<TraceContent> BuildOfLockstep(PacketReader* reader) {
  std::map<uint64_t, int64_t> process_of_track;
  std::map<int64_t, RankBuilder> builders;
  for (auto& [process_id, facts] : reader->processes())
    builders.emplace(process_id, RankBuilder(std::move(facts.trace)));
  for (std::unique_ptr<RawTrack>& track : reader->tracks().tracks()) {
    process_of_track[track->uuid] = track->process_id;
    const auto process = reader->processes().find(track->process_id);
    if (process != reader->processes().end()) {
      const auto place = process->second.track_by_thread.find(track->thread_id);
      if (place != process->second.track_by_thread.end() && place->second.kind == TrackPlace::Kind::kEvents) {
        const TrackPlace& at = place->second;
        builders.at(track->process_id).Add(*track, at.process_id, at.thread_id, reader->names().Intern(at.thread_name));
      }
    }
    track.reset();
  }
  for (const MemoryEvent& event : reader->memory()) {
    const auto process = process_of_track.find(event.track_uuid);
    if (process == process_of_track.end()) continue;
    const auto builder = builders.find(process->second);
    if (builder != builders.end()) builder->second.AddMemory(event);
  }
  std::vector<TraceContent> contents;
  for (auto& [process_id, builder] : builders) {
    const ProcessFacts& facts = reader->processes().at(process_id);
    TraceContent content;
    content.trace = builder.Finish(-reader->shift_ns());
    content.trace.clock_is_aligned = true;
    if (facts.event_count) content.trace.event_count = *facts.event_count;
    content.has_rank = true;
    contents.push_back(std::move(content));
  }
  return contents;
}

std::vector<TraceContent> BuildOfOneRank(PacketReader* reader) {
  std::map<uint64_t, const RawTrack*> by_uuid;
  for (const auto& track : reader->tracks().tracks()) by_uuid[track->uuid] = track.get();
  RankBuilder builder{model::RankTrace()};
  int64_t next_made_up = -1;  // Tracks that are not thread's get ids of their own, as texts do in JSON.
  for (const auto& track : reader->tracks().tracks()) {
    if (track->start_ns.empty()) continue;
    const RawTrack* process = ProcessOf(by_uuid, *track);
    const NameId name = reader->names().Intern(track->name);
    builder.Add(*track, process == nullptr ? 0 : process->process_id,
                track->is_thread ? track->thread_id : next_made_up--, name);
  }
  for (const MemoryEvent& event : reader->memory()) builder.AddMemory(event);
  std::vector<TraceContent> contents(1);
  const auto wall_offset_ns = reader->wall_offset_ns();
  contents.front().trace = builder.Finish(wall_offset_ns.value_or(0));
  model::RankTrace& trace = contents.front().trace;
  // Times since 2001 in nanoseconds are absolute even without a snapshot: PyTorch's exporter writes such.
  trace.base_time_known = wall_offset_ns || (trace.first_ns && *trace.first_ns > 1'000'000'000'000'000'000);
  return contents;
}

}  // namespace

std::vector<TraceContent> BuildTraces(PacketReader* reader) {
  reader->tracks().Finish();
  const bool of_lockstep = reader->written_by_lockstep() && !reader->processes().empty();
  std::vector<TraceContent> contents = of_lockstep ? BuildOfLockstep(reader) : BuildOfOneRank(reader);
  contents.front().names = std::move(reader->names());
  return contents;
}

}  // namespace lockstep::ingest::perfetto
