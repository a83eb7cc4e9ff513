#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "analysis/host_role.h"
#include "analysis/timeline_levels.h"
#include "present/page/column_block.h"
#include "present/page/data_blocks.h"
#include "present/page/lane_levels.h"
#include "present/report/utf8.h"

namespace lockstep::page {
namespace {

using analysis::TimelineClass;
using model::Category;
using model::Lane;

constexpr uint32_t kEscape = UINT32_MAX;
constexpr uint8_t kNoClass = 255;

std::string TrackLabel(const PageModel& model, const model::Track& track) {
  std::string label = IsDeviceLane(track.lane) ? fmt::format("device {} stream {}", track.process_id, track.thread_id)
                                               : fmt::format("thread {}", track.thread_id);
  const std::string_view name = model.run().names[track.thread_name];
  if (name.substr(0, label.size()) == label) return report::Printable(name);  // Some producers say it all.
  if (!name.empty()) label += fmt::format(" ({})", report::Printable(name));
  return label;
}

class EventsBuilder {
 public:
  EventsBuilder(const PageModel& model, const NamePlan& names, size_t rank_index)
      : model_(model),
        trace_(model.run().ranks[rank_index]),
        origin_ns_(model.rank_origin_ns[rank_index]),
        names_(names),
        roles_(model.run().names),
        unit_ns_(model.limits.event_unit_ns) {}

  std::string Build() {
    shortest_ns_ = std::max(model_.limits.shortest_event_ns, LengthThatFits());
    ColumnBlock block;
    block.header().Key("unit_ns").Int(unit_ns_).Key("shortest_event_ns").Int(shortest_ns_).Key("tracks").StartArray();
    for (const model::Track& track : trace_.tracks) {
      if (!TakesLane(model_.limits, track.lane)) continue;
      const size_t before = start_.size();
      const bool sequential = IsSequential(track);
      const size_t levels = AddTrack(track, sequential);
      if (start_.size() == before) continue;
      block.header()
          .StartObject()
          .Key("lane")
          .Text(model::LaneName(track.lane))
          .Key("label")
          .Text(TrackLabel(model_, track))
          .Key("process_id")
          .Int(track.process_id)
          .Key("thread_id")
          .Int(track.thread_id);
      block.header().Key("count").Uint(start_.size() - before).Key("level_count").Uint(levels);
      block.header().Key("sequential").Bool(sequential).EndObject();
    }
    block.header().EndArray();
    block.Add("start", start_);
    block.Add("duration", duration_);
    block.Add("name", name_);
    block.Add("class", class_);
    block.Add("level", level_);
    block.Add("launch", Launches());
    block.Add("long_start", long_start_);
    block.Add("long_duration", long_duration_);
    return block.Finish();
  }

 private:
  /// For each device event the place of the call that launched it, counted from that of the device event before that
  /// has one: 1 and more for forwards by 0, 1, ..., -1, ... in zigzag; 0 for none.
  std::vector<uint32_t> Launches() const {
    std::unordered_map<uint32_t, uint32_t> calls;  // place by correlation
    for (const Correlated& event : correlated_) {
      if (!event.is_device) calls.emplace(event.correlation, event.place);
    }
    std::vector<uint32_t> launches(device_count_, 0);
    int64_t previous = 0;
    for (const Correlated& event : correlated_) {
      if (!event.is_device) continue;
      const auto call = calls.find(event.correlation);
      if (call == calls.end()) continue;
      const int64_t step = int64_t{call->second} - previous;
      launches[event.place] = static_cast<uint32_t>(1 + (step >= 0 ? 2 * step : -2 * step - 1));
      previous = call->second;
    }
    return launches;
  }

  /// The length below which events are left out so that the rank keeps to events_per_rank.
  int64_t LengthThatFits() const {
    std::vector<int64_t> lengths;
    for (const model::Track& track : trace_.tracks) {
      if (!TakesLane(model_.limits, track.lane)) continue;
      lengths.insert(lengths.end(), track.events.duration_ns.begin(), track.events.duration_ns.end());
    }
    const size_t most = model_.limits.events_per_rank;
    if (lengths.size() <= most) return 0;
    const auto nth = lengths.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(lengths.begin(), nth, lengths.end(), std::greater<>());
    return *nth + 1;
  }

  uint8_t ClassOf(const model::Track& track, size_t row) {
    switch (track.lane) {
      case Lane::kDevice:
        if (track.events.category[row] != Category::kKernel) return static_cast<uint8_t>(TimelineClass::kMemory);
        return static_cast<uint8_t>(model_.shared.is_communication[track.events.name[row].value]
                                        ? TimelineClass::kCommunication
                                        : TimelineClass::kCompute);
      case Lane::kOperators: {
        const analysis::HostRole role = roles_[track.events.name[row]];
        if (role == analysis::HostRole::kStep) return kNoClass;
        if (role == analysis::HostRole::kCollective) return static_cast<uint8_t>(TimelineClass::kCommunication);
        return static_cast<uint8_t>(TimelineClass::kHost);
      }
      case Lane::kPython:
      case Lane::kRuntime: return static_cast<uint8_t>(TimelineClass::kHost);
      case Lane::kDeviceAnnotation:
      case Lane::kOther: break;
    }
    return kNoClass;
  }

  static uint32_t Escaped(int64_t value, std::vector<double>* escapes) {
    if (value >= 0 && value < int64_t{kEscape}) return static_cast<uint32_t>(value);
    escapes->push_back(static_cast<double>(value));
    return kEscape;
  }

  /// Does each event begin when the one before has ended? Then the gap between says where it begins in fewer bits.
  bool IsSequential(const model::Track& track) const {
    int64_t end_ns = std::numeric_limits<int64_t>::min();
    for (size_t row = 0; row < track.events.size(); ++row) {
      if (track.events.duration_ns[row] < shortest_ns_) continue;
      if (track.events.start_ns[row] < end_ns) return false;
      end_ns = track.events.end_ns(row);
    }
    return true;
  }

  /// Returns the number of levels.
  size_t AddTrack(const model::Track& track, bool sequential) {
    LaneLevels levels;
    int64_t previous = 0;  // units from the origin: the start of the event before, or its end
    for (size_t row = 0; row < track.events.size(); ++row) {
      if (track.events.duration_ns[row] < shortest_ns_) continue;
      const int64_t start_ns = trace_.clock.ToRun(track.events.start_ns[row]) - origin_ns_;
      const int64_t end_ns = std::max(trace_.clock.ToRun(track.events.end_ns(row)) - origin_ns_, start_ns);
      const int64_t start = start_ns / unit_ns_;
      const int64_t length = (end_ns - start_ns) / unit_ns_;
      start_.push_back(Escaped(start - previous, &long_start_));
      duration_.push_back(Escaped(length, &long_duration_));
      name_.push_back(names_.place[track.events.name[row].value]);
      class_.push_back(ClassOf(track, row));
      level_.push_back(levels.Place(start_ns, end_ns));
      AddCorrelation(track, row);
      previous = sequential ? start + length : start;
    }
    return levels.count();
  }

  /// Of the event that was just added.
  void AddCorrelation(const model::Track& track, size_t row) {
    const bool is_device = track.lane == Lane::kDevice;
    if (is_device) ++device_count_;
    if ((!is_device && track.lane != Lane::kRuntime) || track.events.correlation.empty()) return;
    const uint32_t correlation = track.events.correlation[row];
    if (correlation == 0) return;
    const size_t place = is_device ? device_count_ - 1 : start_.size() - 1;
    correlated_.push_back({correlation, static_cast<uint32_t>(place), is_device});
  }

  /// A call's place is among all events, a device event's among those of devices.
  struct Correlated {
    uint32_t correlation = 0;
    uint32_t place = 0;
    bool is_device = false;
  };

  const PageModel& model_;
  const model::RankTrace& trace_;
  const int64_t origin_ns_;
  const NamePlan& names_;
  analysis::HostRoles roles_;
  int64_t shortest_ns_ = 0;
  const int64_t unit_ns_;
  std::vector<uint32_t> start_, duration_, name_;
  std::vector<uint8_t> class_, level_;
  std::vector<double> long_start_, long_duration_;
  std::vector<Correlated> correlated_;  ///< In the order of the tracks.
  size_t device_count_ = 0;
};

}  // namespace

std::string EventsBytes(const PageModel& model, const NamePlan& names, size_t rank_index) {
  return EventsBuilder(model, names, rank_index).Build();
}

}  // namespace lockstep::page
