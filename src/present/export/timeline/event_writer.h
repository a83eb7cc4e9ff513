#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/event.h"

namespace lockstep::timeline {

/// One collective as joined across ranks, for the slices of its members.
struct CollectiveFacts {
  std::string_view group;
  std::string_view name;
  int64_t sequence = 0;
  std::optional<int64_t> bytes;
  std::optional<int64_t> wait_ns;
};

enum class FlowEnd : uint8_t { kStart, kStep, kEnd };

/// This slice's part in an arrow from slice to slice. Ids are unique in the file.
struct Flow {
  uint64_t id = 0;
  FlowEnd end = FlowEnd::kStart;
  std::string_view name;  ///< "launch", "collective", "link".
};

/// A process track: one rank's window.
struct ProcessTrack {
  int32_t process_id = 0;  ///< Made up: the rank, where a rank has one window.
  int32_t order = 0;
  std::string name;
};

/// A track of slices below a process.
struct SliceTrack {
  int32_t process_id = 0;
  int32_t thread_id = 0;  ///< Made up: unique in the file, and no process's id.
  int32_t order = 0;
  std::string name;
};

/// One slice. Views and pointers live as long as the call.
struct Slice {
  int64_t start_ns = 0;
  int64_t end_ns = 0;     ///< >= start_ns.
  NameId name;            ///< Unless `text` is set.
  std::string_view text;  ///< Name of a slice that is not an event of the run: a step marker, a request.
  model::Category category = model::Category::kOther;
  uint32_t correlation = 0;                         ///< 0 = none.
  const model::CollectiveRecord* record = nullptr;  ///< What the trace said of a collective.
  const CollectiveFacts* facts = nullptr;           ///< What matching made of it.
  std::vector<Flow> flows;
  std::vector<std::pair<std::string_view, std::string_view>> texts;  ///< More args.
};

/// One event of the caching allocator; -1 where the trace has no total.
struct MemoryPoint {
  int64_t time_ns = 0;
  int64_t change_bytes = 0;
  int64_t allocated_bytes = -1;
  int64_t reserved_bytes = -1;
  int16_t device = -1;  ///< -1 = CPU.
};

/// Something that was said at one time. Views live as long as the call.
struct Instant {
  int64_t time_ns = 0;
  std::string_view category;
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string_view>> texts;  ///< Args.
};

/// What a counter's track is called.
struct CounterTrack {
  std::string name;  ///< "SMs Active, device 0".
  std::string unit;  ///< Empty where it is not known.
};

/// Kineto's word for a category ("gpu_memcpy", "cuda_runtime"): what other readers of such traces know.
const char* KinetoCategory(model::Category category);

/// A file format that a timeline can be written in. Calls come in this order: Begin; for every process BeginProcess,
/// its slice tracks (BeginTrack, Slices or Instants, EndTrack), its memory (BeginMemory, Memory..., EndTrack), its
/// counters (BeginCounter, Values..., EndTrack); Finish.
/// Slices of a track come sorted by start and nest; times are the aligned clock, >= the time given to Begin.
class EventWriter {
 public:
  virtual ~EventWriter() = default;
  /// `facts`: metadata as one JSON object (trace_facts.h). `first_ns`: no event is earlier.
  virtual void Begin(std::string_view facts, int64_t first_ns, bool wall_clock) = 0;
  /// `facts`: of this process, one JSON object.
  virtual void BeginProcess(const ProcessTrack& process, std::string_view facts) = 0;
  virtual void BeginTrack(const SliceTrack& track) = 0;
  virtual void AddSlice(const Slice& slice) = 0;
  virtual void AddInstant(const Instant& instant) = 0;
  virtual void BeginMemory(const SliceTrack& track, const std::vector<int16_t>& devices) = 0;
  virtual void AddMemory(const MemoryPoint& point) = 0;
  virtual void BeginCounter(const CounterTrack& counter) = 0;
  virtual void AddValue(int64_t time_ns, double value) = 0;
  virtual void EndTrack() = 0;
  virtual void Finish() = 0;
};

}  // namespace lockstep::timeline
