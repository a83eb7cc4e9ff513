#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ingest/torch_trace/damage.h"
#include "ingest/torch_trace/event_text.h"
#include "ingest/torch_trace/trace_reader.h"
#include "ingest/torch_trace/track_writer.h"

namespace lockstep::ingest {

/// Old traces write a pid or tid as text: "25738", "stream 7". Bytes in front of the number.
size_t PlacePrefixLength(std::string_view place);

/// Turns parsed events into columns. The general path hands over whole events; the template matcher writes "X" events
/// straight to tracks through the same interface.
class TraceAssembler {
 public:
  explicit TraceAssembler(Damage* damage);

  /// How an event was understood: what the template matcher needs to know to repeat it.
  struct Understood {
    enum class Kind : uint8_t { kComplete, kMemory, kIgnored, kOther } kind = Kind::kOther;
    model::Category category = model::Category::kOther;
    bool repeatable = false;  ///< Everything was as expected: an event of the same shape may take the fast path.
  };

  /// Takes one element of traceEvents. `byte_offset` is where it begins; `text_begin` what spans in `fields` are
  /// relative to.
  Understood AddEvent(const std::vector<Field>& fields, uint64_t byte_offset, const char* text_begin);

  // For the matcher
  // -----------------------------------------------------------------------------------------------------
  TrackWriter* TrackFor(model::Lane lane, int64_t process_id, int64_t thread_id);
  NameId InternName(std::string_view name);
  /// True when events of this name must be read in full (metadata of collectives and synchronisations,
  /// shapes).
  bool NeedsGeneralPath(NameId name) const { return needs_general_path_[name.value] != 0; }
  const model::NameTable& names() const { return content_.names; }
  void AddMemory(int64_t time_ns, int64_t change_bytes, int64_t allocated_bytes, int64_t reserved_bytes,
                 int32_t device_type, int64_t device);
  void CountEvent() { ++event_count_; }
  void CountEvents(uint64_t count) { event_count_ += count; }
  uint64_t event_count() const { return event_count_; }
  /// True when any event had a phase: what tells a list of events from any other list of objects.
  bool has_phases() const { return has_phases_; }

  /// Top-level metadata (top_level.h) is written here.
  TraceContent& content() { return content_; }
  void set_base_ns(int64_t base_ns) {
    base_ns_ = base_ns;
    has_base_ = true;
  }

  /// Sorts, applies the base time and gives the content away.
  TraceContent Finish();

 private:
  struct EventFields;
  Understood AddComplete(const EventFields& event, uint64_t byte_offset, const char* text_begin);
  Understood AddInstant(const EventFields& event, uint64_t byte_offset, const char* text_begin);
  void AddMetadata(const EventFields& event);
  void AddCollective(const EventFields& event, model::Category category, int64_t start_ns, int64_t duration_ns,
                     std::pair<int64_t, int64_t> place, uint32_t correlation, NameId name);
  void AddSynchronisation(const EventFields& event, int64_t start_ns, int64_t duration_ns, int64_t device, NameId name);
  void AddShape(const EventFields& event, int64_t start_ns, int64_t duration_ns, int64_t thread_id, NameId name);
  int64_t ReadPlace(const Field* field, bool* repeatable);
  NameId InternField(const Field& field, uint64_t byte_offset);

  Damage* damage_;
  TraceContent content_;
  std::vector<std::unique_ptr<TrackWriter>> tracks_;
  std::map<std::tuple<model::Lane, int64_t, int64_t>, TrackWriter*> track_index_;
  std::map<std::pair<int64_t, int64_t>, NameId> thread_names_;
  // Texts that stand where a pid or tid belongs, in order of appearance: the id of text i is -1 - i. Ids of names would
  // not do: which names were seen before depends on the path that events take.
  std::vector<NameId> text_places_;
  std::map<uint32_t, int64_t> text_place_of_name_;
  std::vector<uint8_t> needs_general_path_;  // by name: a set of kCollective and kMatrix
  // Matrix operators without shapes, until one with shapes is seen. Enough of them, and no more are read in full: the
  // profiler records the shapes of all operators or of none.
  uint32_t shapeless_count_ = 0;
  bool expects_shapes_ = true;
  std::string scratch_;
  uint64_t event_count_ = 0;
  int64_t base_ns_ = 0;
  bool has_base_ = false;
  bool has_phases_ = false;
};

}  // namespace lockstep::ingest
