#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingest/perfetto/annotations.h"
#include "ingest/perfetto/process_facts.h"
#include "ingest/perfetto/sequence_state.h"
#include "ingest/perfetto/slice_tracks.h"
#include "ingest/perfetto/wire_format.h"
#include "ingest/torch_trace/damage.h"
#include "model/name_table.h"

namespace lockstep::ingest::perfetto {

/// An allocator event ("[memory]"), by the track it lies on.
struct MemoryEvent {
  uint64_t track_uuid = 0;
  int64_t time_ns = 0;
  int64_t change_bytes = 0;
  int64_t allocated_bytes = -1;
  int64_t reserved_bytes = -1;
  int16_t device = -1;
};

/// Understands packets one by one and gathers what they say: tracks with slices, allocator events, lockstep's own
/// metadata. Times are the trace clock (BOOTTIME); `wall_offset_ns` takes them to the wall clock.
class PacketReader {
 public:
  explicit PacketReader(Damage* damage) : damage_(damage), tracks_(damage) {}

  /// `byte_offset`: of the packet, for damage.
  void Read(std::string_view packet, uint64_t byte_offset);

  uint64_t event_count() const { return event_count_; }

  // For the builder, once every packet was read.
  SliceTracks& tracks() { return tracks_; }
  model::NameTable& names() { return names_; }
  std::vector<MemoryEvent>& memory() { return memory_; }
  std::map<int64_t, ProcessFacts>& processes() { return processes_; }
  bool written_by_lockstep() const { return shift_ns_.has_value(); }
  int64_t shift_ns() const { return shift_ns_.value_or(0); }
  std::optional<int64_t> wall_offset_ns() const { return wall_offset_ns_; }

 private:
  struct Packet;

  SequenceState& Sequence(uint32_t id);
  void ReadInterned(std::string_view message, SequenceState* state);
  void ReadDefaults(std::string_view message, SequenceState* state);
  void ReadClocks(std::string_view message, SequenceState* state);
  void ReadAttributes(std::string_view message);
  void ReadDescriptor(std::string_view message);
  void ReadTrackEvent(std::string_view message, const Packet& packet, SequenceState* state);
  void ReadRenderStage(std::string_view message, const Packet& packet, SequenceState* state);
  std::optional<int64_t> TimeOf(const Packet& packet, SequenceState* state);
  void AddMemory(uint64_t track_uuid, int64_t time_ns);
  void AddCollective(RawTrack* track, uint32_t row, model::Category category, int64_t start_ns, NameId name,
                     uint32_t correlation);
  uint32_t Correlation(model::Lane lane, std::optional<uint64_t> flow, uint64_t byte_offset);

  Damage* damage_;
  SliceTracks tracks_;
  model::NameTable names_;
  std::unordered_map<uint32_t, SequenceState> sequences_;
  std::map<uint32_t, int64_t> clock_to_trace_ns_;  ///< Built-in clocks but BOOTTIME.
  std::optional<int64_t> wall_offset_ns_;
  std::optional<int64_t> shift_ns_;
  std::map<int64_t, ProcessFacts> processes_;  ///< By made-up process id.
  std::vector<MemoryEvent> memory_;
  std::unordered_map<uint64_t, uint32_t> correlation_of_flow_;
  Annotations args_;
  uint64_t event_count_ = 0;
};

}  // namespace lockstep::ingest::perfetto
