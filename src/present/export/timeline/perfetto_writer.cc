#include <perfetto_trace.pb.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "present/export/timeline/collective_args.h"
#include "present/export/timeline/writers.h"

namespace lockstep::timeline {
namespace {

namespace pb = lockstep::perfetto;

// Meaning of the numbers: docs/formats/perfetto.md.
constexpr uint32_t kRealtime = 1;
constexpr uint32_t kBoottime = 6;
constexpr uint32_t kDeltaClock = 64;  // The first of the clocks that belong to one sequence.
constexpr uint32_t kStateCleared = 1;
constexpr uint32_t kNeedsState = 2;
constexpr uint64_t kTracksPerProcess = uint64_t{1} << 32;

/// Args' names, interned on first use in each sequence. The index + 1 is the id.
constexpr std::array<std::string_view, 23> kArgs = {"correlation",
                                                    "Collective name",
                                                    "dtype",
                                                    "In msg nelems",
                                                    "Out msg nelems",
                                                    "Group size",
                                                    "Process Group Name",
                                                    "Process Group Description",
                                                    "Process Group Ranks",
                                                    "Seq",
                                                    "Comms Id",
                                                    "Src Rank",
                                                    "Dst Rank",
                                                    "collective",
                                                    "group",
                                                    "sequence",
                                                    "bytes",
                                                    "wait ns",
                                                    "Bytes",
                                                    "Total Allocated",
                                                    "Total Reserved",
                                                    "Device Id",
                                                    "Device Type"};

/// Ids of names in the present sequence: a name's id is known when its epoch is the present one.
class Interning {
 public:
  explicit Interning(size_t name_count) : epoch_(name_count, 0), id_(name_count, 0) {}
  void Restart() {
    ++now_;
    next_ = 1;
  }
  /// The id, and whether it is new.
  std::pair<uint64_t, bool> Of(NameId name) {
    if (epoch_[name.value] == now_) return {id_[name.value], false};
    epoch_[name.value] = now_;
    id_[name.value] = next_;
    return {next_++, true};
  }

 private:
  std::vector<uint32_t> epoch_;
  std::vector<uint32_t> id_;
  uint32_t now_ = 0;
  uint32_t next_ = 1;
};

class PerfettoWriter final : public EventWriter {
 public:
  PerfettoWriter(const model::NameTable& names, ByteSink* out)
      : names_(names), out_(out), event_names_(names.size()), values_(names.size()) {}

  void Begin(std::string_view facts, int64_t first_ns, bool wall_clock) override {
    first_ns_ = first_ns;
    wall_clock_ = wall_clock;
    pb::TracePacket packet;
    pb::TrackDescriptor* root = packet.mutable_track_descriptor();
    root->set_uuid(0);
    root->set_process_ordering(pb::TrackDescriptor::PROCESS_ORDERING_EXPLICIT);
    root->set_thread_ordering(pb::TrackDescriptor::THREAD_ORDERING_EXPLICIT);
    packet.set_trusted_packet_sequence_id(NextSequence());
    Put(packet);
    PutFacts("lockstep", facts);
  }

  void BeginProcess(const ProcessTrack& process, std::string_view facts) override {
    counter_count_ = 0;
    process_uuid_ = (static_cast<uint64_t>(process.process_id) + 1) * kTracksPerProcess;
    pb::TracePacket packet;
    pb::TrackDescriptor* track = packet.mutable_track_descriptor();
    track->set_uuid(process_uuid_);
    track->set_name(process.name);
    track->mutable_process()->set_pid(process.process_id);
    track->mutable_process()->set_process_name(process.name);
    track->set_sibling_order_rank(process.order);
    packet.set_trusted_packet_sequence_id(NextSequence());
    Put(packet);
    PutFacts("lockstep.process." + std::to_string(process.process_id), facts);
  }

  void BeginTrack(const SliceTrack& track) override {
    const uint64_t uuid = process_uuid_ + static_cast<uint64_t>(track.thread_id);
    pb::TracePacket packet;
    pb::TrackDescriptor* descriptor = packet.mutable_track_descriptor();
    descriptor->set_uuid(uuid);
    descriptor->set_parent_uuid(process_uuid_);
    descriptor->set_name(track.name);
    descriptor->mutable_thread()->set_pid(track.process_id);
    descriptor->mutable_thread()->set_tid(track.thread_id);
    descriptor->mutable_thread()->set_thread_name(track.name);
    descriptor->set_sibling_order_rank(track.order);
    StartSequence(uuid, &packet);
  }

  void AddSlice(const Slice& slice) override {
    CloseUntil(slice.start_ns);
    pb::TrackEvent* event = StartEvent(slice.start_ns);
    event->set_type(pb::TrackEvent::TYPE_SLICE_BEGIN);
    if (!slice.text.empty()) {
      event->set_name(slice.text.data(), slice.text.size());
    } else {
      SetName(slice.name, event);
    }
    SetCategory(slice.category, event);
    if (slice.correlation != 0) AddArg("correlation", event)->set_int_value(slice.correlation);
    VisitCollectiveArgs(
        slice,
        [&](std::string_view key, auto value) {
          if constexpr (std::is_unsigned_v<decltype(value)>) {
            AddArg(key, event)->set_uint_value(value);
          } else {
            AddArg(key, event)->set_int_value(value);
          }
        },
        [&](std::string_view key, NameId value) { AddInterned(key, value, event); },
        [&](std::string_view key, std::string_view value) {
          AddArg(key, event)->set_string_value(value.data(), value.size());
        });
    for (const auto& [key, value] : slice.texts) {
      AddArg(key, event)->set_string_value(value.data(), value.size());
    }
    for (const Flow& flow : slice.flows) {
      if (flow.end == FlowEnd::kEnd) {
        event->add_terminating_flow_ids(flow.id);
      } else {
        event->add_flow_ids(flow.id);
      }
    }
    Put(packet_);
    open_ends_.push_back(slice.end_ns);
  }

  void AddInstant(const Instant& instant) override {
    pb::TrackEvent* event = StartEvent(instant.time_ns);
    event->set_type(pb::TrackEvent::TYPE_INSTANT);
    event->set_name(instant.name.data(), instant.name.size());
    event->add_categories(instant.category.data(), instant.category.size());
    for (const auto& [key, value] : instant.texts) {
      AddArg(key, event)->set_string_value(value.data(), value.size());
    }
    Put(packet_);
  }

  void BeginMemory(const SliceTrack& track, const std::vector<int16_t>& devices) override {
    counters_.clear();
    uint64_t uuid = process_uuid_ + kTracksPerProcess / 2;
    for (const int16_t device : devices) {
      const std::string place = device < 0 ? "CPU" : "device " + std::to_string(device);
      counters_[device] = uuid;
      PutCounter(uuid++, "memory allocated, " + place);
      PutCounter(uuid++, "memory reserved, " + place);
    }
    BeginTrack(track);
  }

  void AddMemory(const MemoryPoint& point) override {
    pb::TrackEvent* event = StartEvent(point.time_ns);
    event->set_type(pb::TrackEvent::TYPE_INSTANT);
    event->set_name("[memory]");
    AddArg("Bytes", event)->set_int_value(point.change_bytes);
    const uint64_t counter = counters_[point.device];
    const auto add_total = [&](std::string_view key, uint64_t uuid, int64_t bytes) {
      if (bytes < 0) return;
      AddArg(key, event)->set_int_value(bytes);
      event->add_extra_counter_track_uuids(uuid);
      event->add_extra_counter_values(bytes);
    };
    add_total("Total Allocated", counter, point.allocated_bytes);
    add_total("Total Reserved", counter + 1, point.reserved_bytes);
    AddArg("Device Id", event)->set_int_value(point.device);
    AddArg("Device Type", event)->set_int_value(point.device < 0 ? 0 : 1);
    Put(packet_);
  }

  void BeginCounter(const CounterTrack& counter) override {
    // Half of a process's numbers are for threads, a quarter for its memory.
    const uint64_t uuid = process_uuid_ + kTracksPerProcess / 4 * 3 + counter_count_++;
    pb::TracePacket packet;
    pb::TrackDescriptor* track = packet.mutable_track_descriptor();
    track->set_uuid(uuid);
    track->set_parent_uuid(process_uuid_);
    track->set_name(counter.name);
    track->mutable_counter();
    if (!counter.unit.empty()) track->mutable_counter()->set_unit_name(counter.unit);
    StartSequence(uuid, &packet);
  }

  void AddValue(int64_t time_ns, double value) override {
    pb::TrackEvent* event = StartEvent(time_ns);
    event->set_type(pb::TrackEvent::TYPE_COUNTER);
    event->set_double_counter_value(value);
    Put(packet_);
  }

  void EndTrack() override { CloseUntil(INT64_MAX); }
  void Finish() override {}

 private:
  uint32_t NextSequence() { return ++sequence_; }

  void PutFacts(const std::string& key, std::string_view facts) {
    pb::TracePacket packet;
    pb::TraceAttributes::Attribute* attribute = packet.mutable_trace_attributes()->add_attribute();
    attribute->set_key(key);
    attribute->set_string_value(facts.data(), facts.size());
    packet.set_trusted_packet_sequence_id(sequence_);
    Put(packet);
  }

  void PutCounter(uint64_t uuid, const std::string& name) {
    pb::TracePacket packet;
    pb::TrackDescriptor* track = packet.mutable_track_descriptor();
    track->set_uuid(uuid);
    track->set_parent_uuid(process_uuid_);
    track->set_name(name);
    track->mutable_counter()->set_unit(pb::CounterDescriptor::UNIT_SIZE_BYTES);
    packet.set_trusted_packet_sequence_id(sequence_);
    Put(packet);
  }

  /// `packet` describes the track; it also clears the sequence's state and sets its defaults. The packet behind it sets
  /// the clocks: all sequences count from the same instant, since the trace's own clock may never run backwards.
  void StartSequence(uint64_t uuid, pb::TracePacket* packet) {
    event_names_.Restart();
    values_.Restart();
    known_categories_.fill(false);
    known_args_.fill(false);
    packet->set_trusted_packet_sequence_id(NextSequence());
    packet->set_sequence_flags(kStateCleared);
    packet->set_first_packet_on_sequence(true);
    pb::TracePacketDefaults* defaults = packet->mutable_trace_packet_defaults();
    defaults->set_timestamp_clock_id(kDeltaClock);
    defaults->mutable_track_event_defaults()->set_track_uuid(uuid);
    Put(*packet);

    pb::TracePacket clocks;
    const auto add_clock = [&](uint32_t id, bool incremental) {
      pb::ClockSnapshot::Clock* clock = clocks.mutable_clock_snapshot()->add_clocks();
      clock->set_clock_id(id);
      clock->set_timestamp(static_cast<uint64_t>(first_ns_));
      if (incremental) clock->set_is_incremental(true);
    };
    add_clock(kDeltaClock, true);
    add_clock(kBoottime, false);
    if (wall_clock_) add_clock(kRealtime, false);
    clocks.set_trusted_packet_sequence_id(sequence_);
    Put(clocks);
    last_ns_ = first_ns_;
  }

  pb::TrackEvent* StartEvent(int64_t time_ns) {
    packet_.Clear();
    packet_.set_timestamp(static_cast<uint64_t>(time_ns - last_ns_));
    last_ns_ = time_ns;
    packet_.set_trusted_packet_sequence_id(sequence_);
    packet_.set_sequence_flags(kNeedsState);
    return packet_.mutable_track_event();
  }

  void CloseUntil(int64_t time_ns) {
    while (!open_ends_.empty() && open_ends_.back() <= time_ns) {
      StartEvent(open_ends_.back())->set_type(pb::TrackEvent::TYPE_SLICE_END);
      Put(packet_);
      open_ends_.pop_back();
    }
  }

  void SetName(NameId name, pb::TrackEvent* event) {
    const auto [id, is_new] = event_names_.Of(name);
    event->set_name_iid(id);
    if (!is_new) return;
    pb::EventName* entry = packet_.mutable_interned_data()->add_event_names();
    entry->set_iid(id);
    entry->set_name(names_[name].data(), names_[name].size());
  }

  void SetCategory(model::Category category, pb::TrackEvent* event) {
    const auto idx = static_cast<size_t>(category);
    event->add_category_iids(idx + 1);
    if (known_categories_[idx]) return;
    known_categories_[idx] = true;
    pb::EventCategory* entry = packet_.mutable_interned_data()->add_event_categories();
    entry->set_iid(idx + 1);
    entry->set_name(KinetoCategory(category));
  }

  pb::DebugAnnotation* AddArg(std::string_view key, pb::TrackEvent* event) {
    pb::DebugAnnotation* arg = event->add_debug_annotations();
    const auto* const found = std::find(kArgs.begin(), kArgs.end(), key);
    if (found == kArgs.end()) {
      arg->set_name(key.data(), key.size());
      return arg;
    }
    const auto idx = static_cast<size_t>(std::distance(kArgs.begin(), found));
    arg->set_name_iid(idx + 1);
    if (!known_args_[idx]) {
      known_args_[idx] = true;
      pb::DebugAnnotationName* entry = packet_.mutable_interned_data()->add_debug_annotation_names();
      entry->set_iid(idx + 1);
      entry->set_name(key.data(), key.size());
    }
    return arg;
  }

  void AddInterned(std::string_view key, NameId value, pb::TrackEvent* event) {
    const auto [id, is_new] = values_.Of(value);
    AddArg(key, event)->set_string_value_iid(id);
    if (!is_new) return;
    pb::InternedString* entry = packet_.mutable_interned_data()->add_debug_annotation_string_values();
    entry->set_iid(id);
    entry->set_str(names_[value].data(), names_[value].size());
  }

  /// A trace is a message whose field 1 repeats: packets, one behind the other.
  void Put(const pb::TracePacket& packet) {
    constexpr char kPacketTag = 0x0A;
    const size_t size = packet.ByteSizeLong();
    bytes_.clear();
    bytes_.push_back(kPacketTag);
    size_t rest = size;
    for (; rest >= 0x80; rest >>= 7) bytes_.push_back(static_cast<char>((rest & 0x7F) | 0x80));
    bytes_.push_back(static_cast<char>(rest));
    const size_t head = bytes_.size();
    bytes_.resize(head + size);
    packet.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(bytes_.data() + head));
    out_->Write(bytes_);
  }

  const model::NameTable& names_;
  ByteSink* out_;
  int64_t first_ns_ = 0;
  bool wall_clock_ = false;
  uint64_t counter_count_ = 0;  // of the process
  uint64_t process_uuid_ = 0;
  uint32_t sequence_ = 0;

  // Of the present track.
  int64_t last_ns_ = 0;
  std::vector<int64_t> open_ends_;
  Interning event_names_;
  Interning values_;
  std::array<bool, model::kCategoryCount> known_categories_ = {};
  std::array<bool, kArgs.size()> known_args_ = {};
  std::map<int16_t, uint64_t> counters_;

  pb::TracePacket packet_;
  std::string bytes_;
};

}  // namespace

std::unique_ptr<EventWriter> MakePerfettoWriter(const model::NameTable& names, ByteSink* out) {
  return std::make_unique<PerfettoWriter>(names, out);
}

}  // namespace lockstep::timeline
