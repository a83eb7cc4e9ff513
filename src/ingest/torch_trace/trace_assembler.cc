#include "ingest/torch_trace/trace_assembler.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "ingest/torch_trace/collective_args.h"
#include "ingest/torch_trace/decimal.h"
#include "ingest/torch_trace/foreign_trace.h"
#include "ingest/torch_trace/operator_shape.h"
#include "ingest/torch_trace/trace_category.h"

namespace lockstep::ingest {

using model::Category;
using model::Lane;

/// The members of an event that anything reads, found in one walk over its fields; the first of equal keys counts.
struct TraceAssembler::EventFields {
  const Field* phase = nullptr;
  const Field* category = nullptr;
  const Field* name = nullptr;
  const Field* process_id = nullptr;
  const Field* thread_id = nullptr;
  const Field* timestamp = nullptr;
  const Field* duration = nullptr;
  const Field* correlation = nullptr;
  const std::vector<Field>* all = nullptr;

  explicit EventFields(const std::vector<Field>& fields) : all(&fields) {
    const auto keep = [](const Field** slot, const Field& field) {
      if (*slot == nullptr) *slot = &field;
    };
    for (const Field& field : fields) {
      const std::string_view key = field.key;
      if (field.in_args) {
        if (key == "correlation") keep(&correlation, field);
      } else if (key == "ph") {
        keep(&phase, field);
      } else if (key == "cat") {
        keep(&category, field);
      } else if (key == "name") {
        keep(&name, field);
      } else if (key == "pid") {
        keep(&process_id, field);
      } else if (key == "tid") {
        keep(&thread_id, field);
      } else if (key == "ts") {
        keep(&timestamp, field);
      } else if (key == "dur") {
        keep(&duration, field);
      }
    }
  }

  const Field* Arg(std::string_view key) const {
    const auto found =
        std::find_if(all->begin(), all->end(), [&](const Field& f) { return f.in_args && f.key == key; });
    return found == all->end() ? nullptr : &*found;
  }
};

namespace {

// Why events of a name take the general path.
constexpr uint8_t kCollective = 1;
constexpr uint8_t kMatrix = 2;
constexpr uint32_t kMaxShapeless = 16;

uint64_t OffsetOf(const char* text_begin, uint64_t byte_offset, std::string_view span) {
  return byte_offset + static_cast<uint64_t>(span.data() - text_begin);
}

/// Microseconds in a number, or in a string that holds one.
std::optional<int64_t> ReadTime(const Field& field, uint64_t offset, Damage* damage) {
  if (field.kind == ValueKind::kNonFinite) {
    damage->Add(DamageKind::kNonFiniteNumber, offset);
    return std::nullopt;
  }
  if (field.kind != ValueKind::kNumber && field.kind != ValueKind::kString) {
    damage->Add(DamageKind::kWrongType, offset);
    return std::nullopt;
  }
  const auto ns = MicrosecondsToNs(field.raw);
  if (!ns)
    damage->Add(field.kind == ValueKind::kNumber ? DamageKind::kIntegerOverflow : DamageKind::kWrongType, offset);
  // Far enough from the ends of int64 that sums with a base and durations cannot overflow.
  if (ns && (*ns > INT64_MAX / 4 || *ns < INT64_MIN / 4)) {
    damage->Add(DamageKind::kIntegerOverflow, offset);
    return std::nullopt;
  }
  return ns;
}

std::optional<int64_t> ReadInteger(const Field* field) {
  if (field == nullptr) return std::nullopt;
  if (field->kind != ValueKind::kNumber && field->kind != ValueKind::kString) return std::nullopt;
  return ParseInt64(field->raw);
}

}  // namespace

size_t PlacePrefixLength(std::string_view place) {
  constexpr std::string_view kStream = "stream ";
  return place.starts_with(kStream) ? kStream.size() : 0;
}

TraceAssembler::TraceAssembler(Damage* damage) : damage_(damage) { needs_general_path_.push_back(0); }

TrackWriter* TraceAssembler::TrackFor(Lane lane, int64_t process_id, int64_t thread_id) {
  TrackWriter*& writer = track_index_[{lane, process_id, thread_id}];
  if (writer == nullptr) {
    tracks_.push_back(std::make_unique<TrackWriter>(lane, process_id, thread_id));
    writer = tracks_.back().get();
  }
  return writer;
}

NameId TraceAssembler::InternName(std::string_view name) {
  const NameId id = content_.names.Intern(name);
  if (id.value == needs_general_path_.size()) {
    const uint8_t collective = MayCarryCollectiveMetadata(name) ? kCollective : 0;
    needs_general_path_.push_back(collective | (expects_shapes_ && IsMatrixOperator(name) ? kMatrix : 0));
  }
  return id;
}

NameId TraceAssembler::InternField(const Field& field, uint64_t byte_offset) {
  return InternName(DecodeString(field.raw, field.escaped, byte_offset, damage_, &scratch_));
}

/// A pid or tid: a number, or text such as "stream 7" (7), "Spans" (a negative number of its own).
int64_t TraceAssembler::ReadPlace(const Field* field, bool* repeatable) {
  if (field == nullptr) {
    *repeatable = false;
    return 0;
  }
  if (field->kind == ValueKind::kNumber) {
    if (const auto value = ParseInt64(field->raw)) return *value;
  }
  if (field->kind == ValueKind::kString) {
    if (const auto value = ParseInt64(field->raw.substr(PlacePrefixLength(field->raw)))) return *value;
  }
  *repeatable = false;
  if (field->kind != ValueKind::kString) return 0;
  const NameId text = InternField(*field, 0);
  const auto [place, is_new] =
      text_place_of_name_.try_emplace(text.value, -1 - static_cast<int64_t>(text_places_.size()));
  if (is_new) text_places_.push_back(text);
  return place->second;
}

TraceAssembler::Understood TraceAssembler::AddEvent(const std::vector<Field>& fields, uint64_t byte_offset,
                                                    const char* text_begin) {
  CountEvent();
  const EventFields event(fields);
  Understood understood;
  if (event.phase == nullptr || event.phase->kind != ValueKind::kString || event.phase->raw.size() != 1) {
    damage_->Add(event.phase == nullptr ? DamageKind::kMissingKey : DamageKind::kWrongType, byte_offset);
    return understood;
  }
  has_phases_ = true;
  switch (event.phase->raw[0]) {
    case 'X': return AddComplete(event, byte_offset, text_begin);
    case 'i':
    case 'I': return AddInstant(event, byte_offset, text_begin);
    case 'M': AddMetadata(event); return understood;
    case 's':
    case 't':
    case 'f':
    case 'C': return {Understood::Kind::kIgnored, Category::kOther, true};
    default: return understood;
  }
}

TraceAssembler::Understood TraceAssembler::AddComplete(const EventFields& event, uint64_t byte_offset,
                                                       const char* text_begin) {
  Understood understood{Understood::Kind::kComplete, Category::kOther, true};
  const auto offset_of = [&](const Field& field) { return OffsetOf(text_begin, byte_offset, field.raw); };
  if (event.timestamp == nullptr || event.duration == nullptr || event.name == nullptr) {
    damage_->Add(DamageKind::kMissingKey, byte_offset);
    return {};
  }
  const auto start_ns = ReadTime(*event.timestamp, offset_of(*event.timestamp), damage_);
  auto duration_ns = ReadTime(*event.duration, offset_of(*event.duration), damage_);
  if (!start_ns || !duration_ns) return {};
  if (*duration_ns < 0) {
    damage_->Add(DamageKind::kNegativeDuration, offset_of(*event.duration));
    duration_ns = 0;
  }
  if (event.name->kind != ValueKind::kString) {
    damage_->Add(DamageKind::kWrongType, offset_of(*event.name));
    return {};
  }
  if (event.category != nullptr && event.category->kind == ValueKind::kString) {
    const auto category = FindCategory(event.category->raw);
    understood.category = category.value_or(Category::kOther);
    understood.repeatable = !event.category->escaped;
  }
  const int64_t process_id = ReadPlace(event.process_id, &understood.repeatable);
  const int64_t thread_id = ReadPlace(event.thread_id, &understood.repeatable);
  uint32_t correlation = 0;
  const Lane lane = LaneOf(understood.category);
  if (HasCorrelation(lane) && event.correlation != nullptr) {
    const auto value = ReadInteger(event.correlation);
    if (value && *value >= 0 && *value <= UINT32_MAX) {
      correlation = static_cast<uint32_t>(*value);
    } else if (!value || *value != -1) {
      damage_->Add(value ? DamageKind::kIntegerOverflow : DamageKind::kWrongType, offset_of(*event.correlation));
    }
  }
  const NameId name = InternField(*event.name, offset_of(*event.name));
  TrackFor(lane, process_id, thread_id)->Add(*start_ns, *duration_ns, name, understood.category, correlation);

  if (understood.category == Category::kSync) {
    understood.repeatable = false;  // Every one of them must be read in full, whatever its name.
    AddSynchronisation(event, *start_ns, *duration_ns, process_id, name);
    return understood;
  }
  if (event.Arg("Collective name") != nullptr) needs_general_path_[name.value] |= kCollective;
  if ((needs_general_path_[name.value] & kCollective) != 0) {
    AddCollective(event, understood.category, *start_ns, *duration_ns, {process_id, thread_id}, correlation, name);
  }
  if ((needs_general_path_[name.value] & kMatrix) != 0 && lane == Lane::kOperators) {
    AddShape(event, *start_ns, *duration_ns, thread_id, name);
  }
  return understood;
}

void TraceAssembler::AddShape(const EventFields& event, int64_t start_ns, int64_t duration_ns, int64_t thread_id,
                              NameId name) {
  model::OperatorShape shape{start_ns, duration_ns, thread_id, name, {}, {}, {}};
  const auto intern = [&](std::string_view text) {
    return InternName(DecodeString(text, true, 0, damage_, &scratch_));
  };
  if (ReadShapeArgs(*event.all, content_.names[name], intern, &shape)) {
    content_.trace.shapes.push_back(shape);
    return;
  }
  if (!content_.trace.shapes.empty() || ++shapeless_count_ < kMaxShapeless) return;
  expects_shapes_ = false;
  for (uint8_t& reasons : needs_general_path_) reasons &= static_cast<uint8_t>(~kMatrix);
}

void TraceAssembler::AddCollective(const EventFields& event, Category category, int64_t start_ns, int64_t duration_ns,
                                   std::pair<int64_t, int64_t> place, uint32_t correlation, NameId name) {
  model::CollectiveRecord record;
  record.start_ns = start_ns;
  record.duration_ns = duration_ns;
  record.process_id = place.first;
  record.thread_id = place.second;
  record.correlation = correlation;
  record.event_name = name;
  const auto intern = [&](std::string_view text) {
    return InternName(DecodeString(text, true, 0, damage_, &scratch_));
  };
  if (ReadCollectiveArgs(*event.all, category, content_.names[name], intern, &record))
    content_.trace.collectives.push_back(record);
}

void TraceAssembler::AddSynchronisation(const EventFields& event, int64_t start_ns, int64_t duration_ns, int64_t device,
                                        NameId name) {
  using SyncKind = model::SyncRecord::Kind;
  const auto non_negative = [&](std::string_view key) -> std::optional<int64_t> {
    const auto value = ReadInteger(event.Arg(key));
    return value && *value >= 0 ? value : std::nullopt;
  };
  const auto correlation = [&](std::string_view key) {
    const int64_t value = non_negative(key).value_or(0);
    return value <= UINT32_MAX ? static_cast<uint32_t>(value) : 0;
  };
  const std::string_view text = content_.names[name];
  model::SyncRecord record;
  record.kind = text == "Stream Sync"         ? SyncKind::kStream
                : text == "Event Sync"        ? SyncKind::kEvent
                : text == "Context Sync"      ? SyncKind::kContext
                : text == "Stream Wait Event" ? SyncKind::kStreamWaitEvent
                                              : SyncKind::kOther;
  record.start_ns = start_ns;
  record.duration_ns = duration_ns;
  record.device = device;
  record.stream = non_negative("stream");
  record.correlation = correlation("correlation");
  record.event_stream = non_negative("wait_on_stream");
  record.event_record_correlation = correlation("wait_on_cuda_event_record_corr_id");
  content_.trace.synchronisations.push_back(record);
}

TraceAssembler::Understood TraceAssembler::AddInstant(const EventFields& event, uint64_t byte_offset,
                                                      const char* text_begin) {
  if (event.name == nullptr || event.name->raw != "[memory]" || event.timestamp == nullptr) return {};
  const auto time_ns = ReadTime(*event.timestamp, OffsetOf(text_begin, byte_offset, event.timestamp->raw), damage_);
  const auto bytes = ReadInteger(event.Arg("Bytes"));
  if (!time_ns || !bytes) {
    damage_->Add(DamageKind::kMissingKey, byte_offset);
    return {};
  }
  const auto allocated = ReadInteger(event.Arg("Total Allocated"));
  const auto reserved = ReadInteger(event.Arg("Total Reserved"));
  const auto device_type = ReadInteger(event.Arg("Device Type"));
  const auto device = ReadInteger(event.Arg("Device Id"));
  AddMemory(*time_ns, *bytes, allocated.value_or(-1), reserved.value_or(-1),
            static_cast<int32_t>(device_type.value_or(0)), device.value_or(-1));
  return {Understood::Kind::kMemory, Category::kOther, true};
}

void TraceAssembler::AddMemory(int64_t time_ns, int64_t change_bytes, int64_t allocated_bytes, int64_t reserved_bytes,
                               int32_t device_type, int64_t device) {
  model::MemoryColumns& memory = content_.trace.memory;
  memory.time_ns.push_back(time_ns);
  memory.change_bytes.push_back(change_bytes);
  memory.allocated_bytes.push_back(allocated_bytes);
  memory.reserved_bytes.push_back(reserved_bytes);
  const bool on_cpu = device_type == 0 || device < 0 || device > INT16_MAX;
  memory.device.push_back(on_cpu ? int16_t{-1} : static_cast<int16_t>(device));
}

void TraceAssembler::AddMetadata(const EventFields& event) {
  if (event.name == nullptr || (event.name->raw != "thread_name" && event.name->raw != "process_name")) return;
  const Field* name = event.Arg("name");
  if (name == nullptr || name->kind != ValueKind::kString) return;
  if (event.name->raw == "process_name") {
    if (content_.foreign.empty()) content_.foreign = ForeignByProcessName(name->raw);
    return;
  }
  bool ignored = true;
  const int64_t process_id = ReadPlace(event.process_id, &ignored);
  const int64_t thread_id = ReadPlace(event.thread_id, &ignored);
  thread_names_[{process_id, thread_id}] = InternField(*name, 0);
}

TraceContent TraceAssembler::Finish() {
  model::RankTrace& trace = content_.trace;
  trace.event_count = event_count_;
  std::sort(tracks_.begin(), tracks_.end(), [](const auto& a, const auto& b) {
    return std::tuple(a->lane(), a->process_id(), a->thread_id()) <
           std::tuple(b->lane(), b->process_id(), b->thread_id());
  });
  for (auto& writer : tracks_) {
    model::Track track = writer->Finish(base_ns_);
    writer.reset();
    if (track.events.empty()) continue;
    const auto name = thread_names_.find({track.process_id, track.thread_id});
    if (name != thread_names_.end())
      track.thread_name = name->second;
    else if (track.thread_id < 0 && -1 - track.thread_id < static_cast<int64_t>(text_places_.size()))
      track.thread_name = text_places_[static_cast<size_t>(-1 - track.thread_id)];
    trace.complete_event_count += track.events.size();
    const int64_t first = track.events.start_ns[0];
    int64_t last = first;
    for (size_t i = 0; i < track.events.size(); ++i) last = std::max(last, track.events.end_ns(i));
    if (!trace.first_ns || first < *trace.first_ns) trace.first_ns = first;
    if (!trace.last_ns || last > *trace.last_ns) trace.last_ns = last;
    trace.tracks.push_back(std::move(track));
  }
  tracks_.clear();
  for (model::CollectiveRecord& record : trace.collectives) record.start_ns += base_ns_;
  std::stable_sort(trace.collectives.begin(), trace.collectives.end(),
                   [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  for (model::SyncRecord& record : trace.synchronisations) record.start_ns += base_ns_;
  std::stable_sort(trace.synchronisations.begin(), trace.synchronisations.end(),
                   [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  for (model::OperatorShape& shape : trace.shapes) shape.start_ns += base_ns_;
  std::stable_sort(trace.shapes.begin(), trace.shapes.end(), [](const auto& a, const auto& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
  });
  for (int64_t& time : trace.memory.time_ns) time += base_ns_;
  if (content_.foreign.empty()) {
    std::vector<std::string_view> places;
    for (const NameId text : text_places_) places.push_back(content_.names[text]);
    content_.foreign = ForeignByPlaces(places);
  }
  // Times since 2001 in nanoseconds are absolute even without a base.
  trace.base_time_known = has_base_ || (trace.first_ns && *trace.first_ns > 1'000'000'000'000'000'000);
  return std::move(content_);
}

}  // namespace lockstep::ingest
