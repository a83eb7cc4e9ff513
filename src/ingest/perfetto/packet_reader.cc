#include "ingest/perfetto/packet_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "ingest/perfetto/event_category.h"
#include "ingest/torch_trace/collective_args.h"
#include "ingest/torch_trace/decimal.h"
#include "ingest/torch_trace/trace_category.h"

namespace lockstep::ingest::perfetto {
namespace {

// Field numbers: docs/formats/perfetto.md.
constexpr uint32_t kRealtime = 1;
constexpr uint32_t kBoottime = 6;
constexpr uint32_t kFirstSequenceClock = 64;
constexpr uint32_t kLastSequenceClock = 127;
constexpr uint64_t kStateCleared = 1;
constexpr uint64_t kNeedsState = 2;
constexpr uint64_t kSliceBegin = 1;
constexpr uint64_t kSliceEnd = 2;
constexpr uint64_t kInstant = 3;
// Times beyond these are damage; sums with offsets and durations stay within 64 bits.
constexpr int64_t kLargestTime = INT64_MAX / 4;

struct Interned {
  uint64_t id = 0;
  std::string_view text;       ///< Field 2.
  std::string_view last_text;  ///< Field 3: a compute kernel's demangled name.
};

Interned ReadInternedEntry(std::string_view message) {
  Interned entry;
  FieldWalker fields(message);
  while (fields.Next()) {
    if (fields.number() == 1) entry.id = fields.value();
    if (fields.number() == 2) entry.text = fields.text();
    if (fields.number() == 3) entry.last_text = fields.text();
  }
  return entry;
}

std::optional<int64_t> IntegerOf(const Field* field) {
  if (field == nullptr || (field->kind != ValueKind::kNumber && field->kind != ValueKind::kString)) return std::nullopt;
  return ParseInt64(field->raw);
}

/// The digits at the end of "stream 0007".
std::optional<int64_t> NumberBehind(std::string_view text, std::string_view word) {
  if (!text.starts_with(word)) return std::nullopt;
  return ParseInt64(text.substr(word.size()));
}

}  // namespace

/// The fields of a packet that do not depend on what it carries.
struct PacketReader::Packet {
  uint64_t byte_offset = 0;
  std::optional<uint64_t> timestamp;
  std::optional<uint32_t> clock;
  uint32_t sequence = 0;
  uint64_t flags = 0;
};

SequenceState& PacketReader::Sequence(uint32_t id) {
  const auto found = sequences_.find(id);
  if (found != sequences_.end()) return found->second;
  // lockstep writes one sequence after another: what the last one said will not be needed again.
  if (written_by_lockstep()) sequences_.clear();
  return sequences_[id];
}

void PacketReader::Read(std::string_view bytes, uint64_t byte_offset) {
  Packet packet;
  packet.byte_offset = byte_offset;
  std::string_view track_event, descriptor, interned, defaults, clocks, attributes, render_stage;
  bool has_event = false;
  bool cleared = false;
  FieldWalker fields(bytes);
  while (fields.Next()) {
    switch (fields.number()) {
      case 6: clocks = fields.text(); break;
      case 8: packet.timestamp = fields.value(); break;
      case 10: packet.sequence = static_cast<uint32_t>(fields.value()); break;
      case 11:
        track_event = fields.text();
        has_event = true;
        break;
      case 12: interned = fields.text(); break;
      case 13: packet.flags = fields.value(); break;
      case 41: cleared = fields.value() != 0; break;
      case 42:
        if (fields.value() != 0) damage_->Add(DamageKind::kLostPackets, byte_offset);
        break;
      case 50:
      case 133: damage_->Add(DamageKind::kUnreadablePacket, byte_offset); break;
      case 53: render_stage = fields.text(); break;
      case 58: packet.clock = static_cast<uint32_t>(fields.value()); break;
      case 59: defaults = fields.text(); break;
      case 60: descriptor = fields.text(); break;
      case 126: attributes = fields.text(); break;
      default: break;
    }
  }
  if (fields.broken()) {
    damage_->Add(DamageKind::kBadPacket, byte_offset);
    return;
  }
  SequenceState& state = Sequence(packet.sequence);
  if (cleared || (packet.flags & kStateCleared) != 0) state.ClearIncremental();
  if (!interned.empty()) ReadInterned(interned, &state);
  if (!defaults.empty()) ReadDefaults(defaults, &state);
  if (!clocks.empty()) ReadClocks(clocks, &state);
  if (!attributes.empty()) ReadAttributes(attributes);
  if (!descriptor.empty()) ReadDescriptor(descriptor);
  if (!has_event && render_stage.empty()) return;
  if ((packet.flags & kNeedsState) != 0 && !state.valid) {
    damage_->Add(DamageKind::kMissingState, byte_offset);
    return;
  }
  if (has_event) ReadTrackEvent(track_event, packet, &state);
  if (!render_stage.empty()) ReadRenderStage(render_stage, packet, &state);
}

void PacketReader::ReadInterned(std::string_view message, SequenceState* state) {
  FieldWalker fields(message);
  while (fields.Next()) {
    const Interned entry = ReadInternedEntry(fields.text());
    switch (fields.number()) {
      case 1: state->categories.Set(entry.id, std::string(entry.text)); break;
      case 2: state->event_names.Set(entry.id, names_.Intern(entry.text)); break;
      case 3: state->arg_names.Set(entry.id, std::string(entry.text)); break;
      case 24: state->stages.Set(entry.id, std::string(entry.text)); break;
      case 29: state->arg_values.Set(entry.id, std::string(entry.text)); break;
      case 1000:
        state->kernels.Set(entry.id, std::string(entry.last_text.empty() ? entry.text : entry.last_text));
        break;
      default: break;
    }
  }
}

void PacketReader::ReadDefaults(std::string_view message, SequenceState* state) {
  FieldWalker fields(message);
  while (fields.Next()) {
    if (fields.number() == 58) state->default_clock = static_cast<uint32_t>(fields.value());
    if (fields.number() != 11) continue;
    FieldWalker event(fields.text());
    while (event.Next()) {
      if (event.number() == 11) state->default_track = event.value();
    }
  }
}

void PacketReader::ReadClocks(std::string_view message, SequenceState* state) {
  struct Reading {
    uint32_t id = 0;
    int64_t time_ns = 0;
    int64_t unit_ns = 1;
    bool incremental = false;
  };
  std::vector<Reading> readings;
  FieldWalker fields(message);
  while (fields.Next()) {
    if (fields.number() != 1) continue;
    Reading reading;
    uint64_t time = 0;
    FieldWalker clock(fields.text());
    while (clock.Next()) {
      switch (clock.number()) {
        case 1: reading.id = static_cast<uint32_t>(clock.value()); break;
        case 2: time = clock.value(); break;
        case 3: reading.incremental = clock.value() != 0; break;
        case 4: reading.unit_ns = std::clamp<int64_t>(clock.signed_value(), 1, 1'000'000'000); break;
        default: break;
      }
    }
    if (time > static_cast<uint64_t>(kLargestTime) ||
        __builtin_mul_overflow(static_cast<int64_t>(time), reading.unit_ns, &reading.time_ns) ||
        reading.time_ns > kLargestTime)
      continue;
    readings.push_back(reading);
  }
  const auto boot = std::find_if(readings.begin(), readings.end(), [](const Reading& r) { return r.id == kBoottime; });
  for (const Reading& reading : readings) {
    const int64_t to_trace_ns = boot == readings.end() ? 0 : boot->time_ns - reading.time_ns;
    if (reading.id >= kFirstSequenceClock && reading.id <= kLastSequenceClock) {
      state->clocks[reading.id] = {reading.incremental, reading.unit_ns, reading.time_ns, to_trace_ns};
    } else if (boot != readings.end() && reading.id != kBoottime) {
      clock_to_trace_ns_[reading.id] = to_trace_ns;
      if (reading.id == kRealtime && !wall_offset_ns_) wall_offset_ns_ = -to_trace_ns;
    }
  }
}

void PacketReader::ReadAttributes(std::string_view message) {
  constexpr std::string_view kProcess = "lockstep.process.";
  FieldWalker fields(message);
  while (fields.Next()) {
    if (fields.number() != 1) continue;
    std::string_view key;
    std::string_view value;
    FieldWalker attribute(fields.text());
    while (attribute.Next()) {
      if (attribute.number() == 1) key = attribute.text();
      if (attribute.number() == 3) value = attribute.text();
    }
    if (key == "lockstep") {
      shift_ns_ = ReadRunFacts(value);
    } else if (key.starts_with(kProcess)) {
      const auto process = ParseInt64(key.substr(kProcess.size()));
      auto facts = ReadProcessFacts(value);
      if (process && facts) processes_[*process] = std::move(*facts);
    }
  }
}

void PacketReader::ReadDescriptor(std::string_view message) {
  uint64_t uuid = 0;
  uint64_t parent = 0;
  std::string_view name;
  std::string_view process;
  std::string_view thread;
  bool is_counter = false;
  FieldWalker fields(message);
  while (fields.Next()) {
    switch (fields.number()) {
      case 1: uuid = fields.value(); break;
      case 2:
      case 10: name = fields.text(); break;
      case 3: process = fields.text(); break;
      case 4: thread = fields.text(); break;
      case 5: parent = fields.value(); break;
      case 8: is_counter = true; break;
      default: break;
    }
  }
  RawTrack& track = tracks_.Track(uuid);
  track.parent_uuid = parent;
  track.is_counter = is_counter;
  if (!name.empty()) track.name = name;
  FieldWalker process_fields(process);
  while (process_fields.Next()) {
    track.is_process = true;
    if (process_fields.number() == 1) track.process_id = static_cast<int32_t>(process_fields.value());
    if (process_fields.number() == 6 && track.name.empty()) track.name = process_fields.text();
  }
  FieldWalker thread_fields(thread);
  while (thread_fields.Next()) {
    track.is_thread = true;
    if (thread_fields.number() == 1) track.process_id = static_cast<int32_t>(thread_fields.value());
    if (thread_fields.number() == 2) track.thread_id = static_cast<int32_t>(thread_fields.value());
    if (thread_fields.number() == 5 && track.name.empty()) track.name = thread_fields.text();
  }
}

std::optional<int64_t> PacketReader::TimeOf(const Packet& packet, SequenceState* state) {
  if (!packet.timestamp || *packet.timestamp > static_cast<uint64_t>(kLargestTime)) {
    damage_->Add(DamageKind::kMissingKey, packet.byte_offset);
    return std::nullopt;
  }
  const auto time = static_cast<int64_t>(*packet.timestamp);
  const uint32_t id = packet.clock.value_or(state->default_clock.value_or(kBoottime));
  if (id == kBoottime) return time;
  const auto bounded = [&](int64_t ns) -> std::optional<int64_t> {
    if (ns >= 0 && ns <= kLargestTime) return ns;
    damage_->Add(DamageKind::kIntegerOverflow, packet.byte_offset);
    return std::nullopt;
  };
  if (id >= kFirstSequenceClock && id <= kLastSequenceClock) {
    const auto found = state->clocks.find(id);
    if (found == state->clocks.end()) {
      damage_->Add(DamageKind::kUnknownClock, packet.byte_offset);
      return std::nullopt;
    }
    SequenceState::Clock& clock = found->second;
    int64_t ns = 0;
    if (__builtin_mul_overflow(time, clock.unit_ns, &ns) || ns > kLargestTime) return bounded(-1);
    if (clock.incremental) {
      if (clock.last > kLargestTime - ns) return bounded(-1);
      clock.last += ns;
      ns = clock.last;
    }
    return bounded(ns + clock.to_trace_ns);
  }
  const auto found = clock_to_trace_ns_.find(id);
  if (found == clock_to_trace_ns_.end()) {
    // One clock alone is as good as any: without snapshots the times are what they are.
    if (clock_to_trace_ns_.empty()) return time;
    damage_->Add(DamageKind::kUnknownClock, packet.byte_offset);
    return std::nullopt;
  }
  return bounded(time + found->second);
}

void PacketReader::AddMemory(uint64_t track_uuid, int64_t time_ns) {
  const auto change = IntegerOf(args_.Find("Bytes"));
  if (!change) return;
  MemoryEvent event;
  event.track_uuid = track_uuid;
  event.time_ns = time_ns;
  event.change_bytes = *change;
  event.allocated_bytes = IntegerOf(args_.Find("Total Allocated")).value_or(-1);
  event.reserved_bytes = IntegerOf(args_.Find("Total Reserved")).value_or(-1);
  const int64_t type = IntegerOf(args_.Find("Device Type")).value_or(0);
  const int64_t device = IntegerOf(args_.Find("Device Id")).value_or(-1);
  event.device = type == 0 || device < 0 || device > INT16_MAX ? int16_t{-1} : static_cast<int16_t>(device);
  memory_.push_back(event);
}

void PacketReader::AddCollective(RawTrack* track, uint32_t row, model::Category category, int64_t start_ns, NameId name,
                                 uint32_t correlation) {
  const std::string_view text = names_[name];
  if (args_.fields().empty() && !IsCollectiveRangeName(text) && text != "record_param_comms") return;
  if (!MayCarryCollectiveMetadata(text) && args_.Find("Collective name") == nullptr) return;
  model::CollectiveRecord record;
  record.start_ns = start_ns;
  record.correlation = correlation;
  record.event_name = name;
  const auto intern = [&](std::string_view value) { return names_.Intern(value); };
  if (ReadCollectiveArgs(args_.fields(), category, text, intern, &record))
    track->collectives.push_back({row, std::move(record)});
}

/// The correlation id of an event: its arg, else the flow that joins it with its launch.
uint32_t PacketReader::Correlation(model::Lane lane, std::optional<uint64_t> flow, uint64_t byte_offset) {
  if (!HasCorrelation(lane)) return 0;
  if (const Field* field = args_.Find("correlation")) {
    const auto value = IntegerOf(field);
    if (value && *value >= 0 && *value <= UINT32_MAX) return static_cast<uint32_t>(*value);
    if (!value || *value != -1) damage_->Add(DamageKind::kIntegerOverflow, byte_offset);
    return 0;
  }
  // lockstep's flows mean more than launches, and every launch has its arg.
  if (!flow || *flow == 0 || written_by_lockstep()) return 0;
  if (*flow <= UINT32_MAX) return static_cast<uint32_t>(*flow);
  return correlation_of_flow_.try_emplace(*flow, static_cast<uint32_t>(correlation_of_flow_.size() + 1)).first->second;
}

void PacketReader::ReadTrackEvent(std::string_view message, const Packet& packet, SequenceState* state) {
  const auto time_ns = TimeOf(packet, state);
  if (!time_ns) return;
  args_.Clear();
  uint64_t type = 0;
  std::optional<uint64_t> track_uuid = state->default_track;
  std::optional<NameId> name;
  std::optional<uint64_t> flow;
  std::string_view category;
  bool sound = true;
  FieldWalker fields(message);
  while (fields.Next()) {
    switch (fields.number()) {
      case 3:
        if (const std::string* text = state->categories.Find(fields.value()); text != nullptr && category.empty())
          category = *text;
        break;
      case 4: sound = args_.Add(fields.text(), *state) && sound; break;
      case 9: type = fields.value(); break;
      case 10:
        if (const NameId* known = state->event_names.Find(fields.value())) {
          name = *known;
        } else {
          damage_->Add(DamageKind::kMissingState, packet.byte_offset);
        }
        break;
      case 11: track_uuid = fields.value(); break;
      case 22:
        if (category.empty()) category = fields.text();
        break;
      case 23: name = names_.Intern(fields.text()); break;
      case 36:
      case 42:
      case 47:
      case 48:
        if (!flow) flow = fields.value();
        break;
      default: break;
    }
  }
  if (fields.broken() || !sound) {
    damage_->Add(DamageKind::kBadPacket, packet.byte_offset);
    return;
  }
  RawTrack& track = tracks_.Track(track_uuid.value_or(0));
  if (type == kSliceEnd) {
    tracks_.End(&track, *time_ns, packet.byte_offset);
    return;
  }
  if (type == kInstant) {
    ++event_count_;
    if (name && names_[*name] == "[memory]") AddMemory(track.uuid, *time_ns);
    return;
  }
  if (type != kSliceBegin) return;
  ++event_count_;
  const std::string_view text = name ? names_[*name] : std::string_view();
  const model::Category known = category.empty() ? GuessCategory(text, args_, track.name)
                                                 : FindCategory(category).value_or(model::Category::kOther);
  const uint32_t correlation = Correlation(LaneOf(known), flow, packet.byte_offset);
  const uint32_t row =
      tracks_.Begin(&track, *time_ns, name.value_or(NameId{0}), static_cast<uint8_t>(known), correlation);
  AddCollective(&track, row, known, *time_ns, name.value_or(NameId{0}), correlation);
}

void PacketReader::ReadRenderStage(std::string_view message, const Packet& packet, SequenceState* state) {
  const auto time_ns = TimeOf(packet, state);
  if (!time_ns) return;
  args_.Clear();
  int64_t duration_ns = 0;
  int64_t device = 0;
  std::string_view stage;
  std::string_view queue;
  uint64_t queue_id = 0;
  std::string_view name;
  std::string_view kernel;
  FieldWalker fields(message);
  while (fields.Next()) {
    switch (fields.number()) {
      case 2: duration_ns = std::clamp<int64_t>(fields.signed_value(), 0, kLargestTime); break;
      case 6: {
        const Interned pair = ReadInternedEntry(fields.text());
        std::string_view key;
        FieldWalker extra(fields.text());
        while (extra.Next()) {
          if (extra.number() == 1) key = extra.text();
        }
        args_.AddText(key, pair.text);
        break;
      }
      case 11: device = static_cast<int32_t>(fields.value()); break;
      case 13:
        queue_id = fields.value();
        if (const std::string* text = state->stages.Find(fields.value())) queue = *text;
        break;
      case 14:
        if (const std::string* text = state->stages.Find(fields.value())) stage = *text;
        break;
      case 17: name = fields.text(); break;
      case 19:
        if (const std::string* text = state->kernels.Find(fields.value())) kernel = *text;
        break;
      case 20:
        if (const NameId* known = state->event_names.Find(fields.value())) name = names_[*known];
        break;
      default: break;
    }
  }
  if (fields.broken()) {
    damage_->Add(DamageKind::kBadPacket, packet.byte_offset);
    return;
  }
  ++event_count_;
  if (name.empty()) name = kernel.empty() ? stage : kernel;
  const NameId name_id = names_.Intern(name);
  const model::Category category = CategoryOfStage(stage);
  const int64_t stream =
      IntegerOf(args_.Find("stream id"))
          .value_or(NumberBehind(queue, "stream ").value_or(static_cast<int64_t>(queue_id & 0xFFFFFF)));
  // A track of its own per device, stream and kind: uuids of this form are not given by producers in practice.
  constexpr uint64_t kStages = uint64_t{0x6C6F636B} << 32;
  const bool annotation = category == model::Category::kDeviceAnnotation;
  RawTrack& track = tracks_.Track(kStages ^ (static_cast<uint64_t>(device) << 48) ^
                                  (static_cast<uint64_t>(stream) << 1) ^ (annotation ? 1 : 0));
  track.is_thread = true;
  track.process_id = device;
  track.thread_id = stream;
  const uint32_t correlation = Correlation(LaneOf(category), std::nullopt, packet.byte_offset);
  const uint32_t row =
      tracks_.AddWhole(&track, *time_ns, duration_ns, name_id, static_cast<uint8_t>(category), correlation);
  AddCollective(&track, row, category, *time_ns, name_id, correlation);
}

}  // namespace lockstep::ingest::perfetto
