#include "ingest/nsight/process_events.h"

#include <algorithm>
#include <utility>

namespace lockstep::ingest::nsight {

using model::Lane;

uint64_t ProcessEvents::EventCount(Lane lane) const {
  uint64_t count = 0;
  for (const auto& [key, writer] : writers_) count += std::get<0>(key) == lane ? writer->size() : 0;
  return count;
}

uint64_t ProcessEvents::event_count() const {
  uint64_t count = 0;
  for (const auto& [key, writer] : writers_) count += writer->size();
  return count;
}

int64_t ProcessEvents::FirstDevice() const {
  int64_t first = INT64_MAX;
  for (const auto& [key, writer] : writers_) {
    if (std::get<0>(key) == Lane::kDevice) first = std::min(first, std::get<1>(key));
  }
  return first;
}

void ProcessEvents::Absorb(ProcessEvents&& other) {
  for (auto& [key, writer] : other.writers_) writers_.try_emplace(key, std::move(writer));
  other.writers_.clear();
  other.last_ = nullptr;
  const auto append = [](auto& from, auto* to) { to->insert(to->end(), from.begin(), from.end()); };
  append(other.collectives_, &collectives_);
  append(other.synchronisations_, &synchronisations_);
  append(other.memory_, &memory_);
}

std::vector<std::unique_ptr<ProcessEvents>> ProcessEvents::SplitByDevice() {
  const int64_t own = FirstDevice();
  std::map<int64_t, std::unique_ptr<ProcessEvents>> others;
  const auto of_device = [&](int64_t device) -> ProcessEvents& {
    auto& part = others[device];
    if (part == nullptr) part = std::make_unique<ProcessEvents>(global_pid_);
    return *part;
  };
  for (auto entry = writers_.begin(); entry != writers_.end();) {
    const auto& [lane, device, stream] = entry->first;
    if (lane != Lane::kDevice || device == own) {
      ++entry;
      continue;
    }
    of_device(device).writers_.emplace(entry->first, std::move(entry->second));
    entry = writers_.erase(entry);
  }
  last_ = nullptr;
  std::erase_if(synchronisations_, [&](const model::SyncRecord& record) {
    const auto part = others.find(record.device);
    if (part == others.end()) return false;
    part->second->synchronisations_.push_back(record);
    return true;
  });
  std::vector<std::unique_ptr<ProcessEvents>> parts;
  for (auto& [device, part] : others) parts.push_back(std::move(part));
  return parts;
}

void ProcessEvents::Finish(int64_t base_ns, const std::map<int64_t, NameId>& thread_names, model::RankTrace* trace) {
  for (auto& [key, writer] : writers_) {
    model::Track track = writer->Finish(base_ns);
    writer.reset();
    if (track.events.empty()) continue;
    if (track.lane != Lane::kDevice) {
      const auto name = thread_names.find((track.process_id << 24) | (track.thread_id & 0xFFFFFF));
      if (name != thread_names.end()) track.thread_name = name->second;
    }
    trace->complete_event_count += track.events.size();
    const int64_t first = track.events.start_ns[0];
    int64_t last = first;
    for (size_t i = 0; i < track.events.size(); ++i) last = std::max(last, track.events.end_ns(i));
    trace->first_ns = std::min(trace->first_ns.value_or(INT64_MAX), first);
    trace->last_ns = std::max(trace->last_ns.value_or(INT64_MIN), last);
    if (track.lane != Lane::kOperators) {
      trace->tracks.push_back(std::move(track));
      continue;
    }
    for (model::Track& part : SplitCrossing(std::move(track))) trace->tracks.push_back(std::move(part));
  }
  writers_.clear();
  std::stable_sort(trace->tracks.begin(), trace->tracks.end(), [](const model::Track& a, const model::Track& b) {
    return std::tuple(a.lane, a.process_id, a.thread_id) < std::tuple(b.lane, b.process_id, b.thread_id);
  });
  const auto by_start = [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; };
  for (model::CollectiveRecord& record : collectives_) record.start_ns += base_ns;
  std::stable_sort(collectives_.begin(), collectives_.end(), by_start);
  trace->collectives = std::move(collectives_);
  for (model::SyncRecord& record : synchronisations_) record.start_ns += base_ns;
  std::stable_sort(synchronisations_.begin(), synchronisations_.end(), by_start);
  trace->synchronisations = std::move(synchronisations_);
  std::stable_sort(memory_.begin(), memory_.end(),
                   [](const MemoryChange& a, const MemoryChange& b) { return a.time_ns < b.time_ns; });
  std::map<int16_t, int64_t> held;  // What the driver gave, which is what a caching allocator calls reserved.
  for (const MemoryChange& change : memory_) {
    int64_t& total = held[change.device];
    total = std::max<int64_t>(total + change.change_bytes, 0);
    trace->memory.time_ns.push_back(change.time_ns + base_ns);
    trace->memory.change_bytes.push_back(change.change_bytes);
    trace->memory.allocated_bytes.push_back(-1);
    trace->memory.reserved_bytes.push_back(total);
    trace->memory.device.push_back(change.device);
  }
  trace->event_count = trace->complete_event_count + memory_.size();
  memory_.clear();
}

std::vector<model::Track> SplitCrossing(model::Track track) {
  // Most threads nest: then one walk is all.
  const model::EventColumns& events = track.events;
  std::vector<std::vector<int64_t>> open(1);  // Per track, the ends of what is open, innermost last.
  std::vector<uint32_t> part_of;
  bool crosses = false;
  for (size_t i = 0; i < events.size(); ++i) {
    const int64_t start = events.start_ns[i];
    const int64_t end = events.end_ns(i);
    size_t part = 0;
    for (;; ++part) {
      if (part == open.size()) open.emplace_back();
      std::vector<int64_t>& stack = open[part];
      while (!stack.empty() && stack.back() <= start) stack.pop_back();
      if (stack.empty() || end <= stack.back()) {
        stack.push_back(end);
        break;
      }
      if (part == 15) break;  // What crosses this often is not a call stack; it stays where it is.
    }
    if (part > 0 && !crosses) {
      crosses = true;
      part_of.assign(i, 0);
    }
    if (crosses) part_of.push_back(static_cast<uint32_t>(part));
  }
  std::vector<model::Track> parts;
  if (!crosses) {
    parts.push_back(std::move(track));
    return parts;
  }
  for (size_t part = 0; part < open.size(); ++part) {
    // Further tracks of a thread have numbers below zero, which no thread has.
    const int64_t thread_id = part == 0 ? track.thread_id : -(static_cast<int64_t>(part) << 32 | track.thread_id);
    TrackWriter writer(track.lane, track.process_id, thread_id);
    for (size_t i = 0; i < events.size(); ++i) {
      if (part_of[i] == part)
        writer.Add(events.start_ns[i], events.duration_ns[i], events.name[i], events.category[i], 0);
    }
    parts.push_back(writer.Finish(0));
    parts.back().thread_name = track.thread_name;
  }
  return parts;
}

}  // namespace lockstep::ingest::nsight
