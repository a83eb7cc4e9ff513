#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/nanoseconds.h"
#include "model/run.h"

namespace lockstep::analysis::testing {

inline constexpr int64_t kMs = kMillisecondNs;

/// Builds one rank's trace by hand for tests. Events may be added in any order; Build() sorts them as ingest does.
/// Times are the trace clock, ns. CPU events live on process 100 + rank; device events on device 0 unless OnDevice()
/// says so.
class RankBuilder {
 public:
  RankBuilder(model::NameTable* names, int32_t rank, int32_t window) : names_(names), rank_(rank), window_(window) {}

  /// Device of the device events and allocator rows that follow.
  RankBuilder& OnDevice(int32_t ordinal) {
    device_ = ordinal;
    return *this;
  }
  RankBuilder& WorldSize(int32_t size) {
    world_size_ = size;
    return *this;
  }
  RankBuilder& Host(std::string host) {
    host_ = std::move(host);
    return *this;
  }
  RankBuilder& Group(model::ProcessGroup group) {
    groups_.push_back(std::move(group));
    return *this;
  }
  RankBuilder& Device(model::Device device) {
    devices_.push_back(std::move(device));
    return *this;
  }

  RankBuilder& Op(int64_t thread, std::string_view name, int64_t start_ns, int64_t duration_ns) {
    return AddCpu(model::Lane::kOperators, model::Category::kCpuOp, thread, name, start_ns, duration_ns, 0);
  }
  RankBuilder& Annotation(int64_t thread, std::string_view name, int64_t start_ns, int64_t duration_ns) {
    return AddCpu(model::Lane::kOperators, model::Category::kUserAnnotation, thread, name, start_ns, duration_ns, 0);
  }
  RankBuilder& Python(int64_t thread, std::string_view name, int64_t start_ns, int64_t duration_ns) {
    return AddCpu(model::Lane::kPython, model::Category::kPythonFunction, thread, name, start_ns, duration_ns, 0);
  }
  RankBuilder& Runtime(int64_t thread, std::string_view name, int64_t start_ns, int64_t duration_ns,
                       uint32_t correlation = 0) {
    return AddCpu(model::Lane::kRuntime, model::Category::kRuntime, thread, name, start_ns, duration_ns, correlation);
  }
  RankBuilder& Driver(int64_t thread, std::string_view name, int64_t start_ns, int64_t duration_ns,
                      uint32_t correlation = 0) {
    return AddCpu(model::Lane::kRuntime, model::Category::kDriver, thread, name, start_ns, duration_ns, correlation);
  }
  RankBuilder& Other(int64_t thread, model::Category category, std::string_view name, int64_t start_ns,
                     int64_t duration_ns) {
    return AddCpu(model::Lane::kOther, category, thread, name, start_ns, duration_ns, 0);
  }

  RankBuilder& Kernel(int64_t stream, std::string_view name, int64_t start_ns, int64_t duration_ns,
                      uint32_t correlation = 0) {
    return AddDevice(model::Category::kKernel, stream, name, start_ns, duration_ns, correlation);
  }
  RankBuilder& Memcpy(int64_t stream, std::string_view name, int64_t start_ns, int64_t duration_ns,
                      uint32_t correlation = 0) {
    return AddDevice(model::Category::kMemcpy, stream, name, start_ns, duration_ns, correlation);
  }
  RankBuilder& Memset(int64_t stream, std::string_view name, int64_t start_ns, int64_t duration_ns,
                      uint32_t correlation = 0) {
    return AddDevice(model::Category::kMemset, stream, name, start_ns, duration_ns, correlation);
  }

  /// A side record; the caller adds the event itself as well when it needs both.
  RankBuilder& Collective(model::CollectiveRecord record) {
    collectives_.push_back(record);
    return *this;
  }
  /// An allocator row of device `device` (-1 = CPU); totals of -1 mean "not in the file".
  RankBuilder& Allocation(int16_t device, int64_t time_ns, int64_t change_bytes, int64_t allocated_bytes = -1,
                          int64_t reserved_bytes = -1) {
    allocations_.push_back({time_ns, change_bytes, allocated_bytes, reserved_bytes, device});
    return *this;
  }

  NameId Name(std::string_view text) { return names_->Intern(text); }

  model::RankTrace Build() const {
    model::RankTrace trace;
    trace.rank = {rank_};
    trace.rank_source = model::RankSource::kDistributedInfo;
    trace.window = window_;
    trace.host = host_;
    trace.source = "rank" + std::to_string(rank_) + ".json";
    if (world_size_ > 0) trace.world_size = world_size_;
    trace.groups = groups_;
    trace.devices = devices_;
    trace.base_time_known = true;
    for (const auto& [key, events] : tracks_) AppendTrack(key, events, &trace);
    trace.collectives = collectives_;
    std::stable_sort(trace.collectives.begin(), trace.collectives.end(),
                     [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    std::vector<AllocationRow> rows = allocations_;
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
    for (const AllocationRow& row : rows) {
      trace.memory.time_ns.push_back(row.time_ns);
      trace.memory.change_bytes.push_back(row.change_bytes);
      trace.memory.allocated_bytes.push_back(row.allocated_bytes);
      trace.memory.reserved_bytes.push_back(row.reserved_bytes);
      trace.memory.device.push_back(row.device);
    }
    trace.event_count = trace.complete_event_count + rows.size();
    return trace;
  }

 private:
  using TrackKey = std::tuple<model::Lane, int64_t, int64_t>;
  struct Event {
    int64_t start_ns;
    int64_t duration_ns;
    NameId name;
    model::Category category;
    uint32_t correlation;
  };
  struct AllocationRow {
    int64_t time_ns;
    int64_t change_bytes;
    int64_t allocated_bytes;
    int64_t reserved_bytes;
    int16_t device;
  };

  RankBuilder& AddCpu(model::Lane lane, model::Category category, int64_t thread, std::string_view name,
                      int64_t start_ns, int64_t duration_ns, uint32_t correlation) {
    tracks_[{lane, 100 + rank_, thread}].push_back(
        {start_ns, duration_ns, names_->Intern(name), category, correlation});
    return *this;
  }
  RankBuilder& AddDevice(model::Category category, int64_t stream, std::string_view name, int64_t start_ns,
                         int64_t duration_ns, uint32_t correlation) {
    tracks_[{model::Lane::kDevice, device_, stream}].push_back(
        {start_ns, duration_ns, names_->Intern(name), category, correlation});
    return *this;
  }

  static void AppendTrack(const TrackKey& key, std::vector<Event> events, model::RankTrace* trace) {
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
      return a.duration_ns > b.duration_ns;
    });
    model::Track track;
    std::tie(track.lane, track.process_id, track.thread_id) = key;
    const bool with_correlation = track.lane == model::Lane::kRuntime || track.lane == model::Lane::kDevice;
    for (const Event& event : events) {
      track.events.start_ns.push_back(event.start_ns);
      track.events.duration_ns.push_back(event.duration_ns);
      track.events.name.push_back(event.name);
      track.events.category.push_back(event.category);
      if (with_correlation) track.events.correlation.push_back(event.correlation);
      const int64_t end_ns = event.start_ns + event.duration_ns;
      trace->first_ns = std::min(trace->first_ns.value_or(event.start_ns), event.start_ns);
      trace->last_ns = std::max(trace->last_ns.value_or(end_ns), end_ns);
    }
    trace->complete_event_count += events.size();
    trace->tracks.push_back(std::move(track));
  }

  model::NameTable* names_;
  int32_t rank_;
  int32_t window_;
  int32_t device_ = 0;
  int32_t world_size_ = 0;
  std::string host_ = "host0";
  std::vector<model::ProcessGroup> groups_;
  std::vector<model::Device> devices_;
  std::map<TrackKey, std::vector<Event>> tracks_;
  std::vector<model::CollectiveRecord> collectives_;
  std::vector<AllocationRow> allocations_;
};

/// Builds a job: `RunBuilder job; job.Rank(0).Kernel(7, "gemm", 0, 10); model::Run run = job.Build();`.
class RunBuilder {
 public:
  /// The builder of a rank's window, made on first use. The reference stays valid.
  RankBuilder& Rank(int32_t rank, int32_t window = 0) {
    auto& slot = by_key_[{window, rank}];
    if (slot == nullptr) slot = &ranks_.emplace_back(&names_, rank, window);
    return *slot;
  }
  /// Takes the names along: call it once.
  model::Run Build() {
    model::Run run;
    for (const auto& entry : by_key_) run.ranks.push_back(entry.second->Build());
    run.names = std::move(names_);
    return run;
  }

 private:
  model::NameTable names_;
  std::deque<RankBuilder> ranks_;
  std::map<std::pair<int32_t, int32_t>, RankBuilder*> by_key_;  // (window, rank)
};

}  // namespace lockstep::analysis::testing
