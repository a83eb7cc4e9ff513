#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::evidence {

constexpr int64_t kNotRecorded =
    INT64_MIN;  ///< Of a number in a FlightEntry that the dump lacks or has a sentinel for.

/// How far an operation came. Gloo never gets beyond kScheduled; its mark of completion is FlightEntry::retired.
enum class EntryState : uint8_t { kUnknown, kScheduled, kStarted, kCompleted };
enum class Tristate : int8_t { kNo = 0, kYes = 1, kUnknown = -1 };

/// One Python (or C++) frame of an operation's call stack.
struct FlightFrame {
  uint32_t function = 0;  ///< Into FlightRecord::texts.
  uint32_t file = 0;      ///< Into FlightRecord::texts.
  int32_t line = 0;
};

/// One operation in a process's ring buffer. Small and flat: a job has millions. Indices of equal content are equal
/// within one FlightRecord, so that texts, sizes and stacks compare by index.
struct FlightEntry {
  int64_t record_id = kNotRecorded;            ///< Counts the process's operations. Never comparable between ranks.
  int64_t collective_sequence = kNotRecorded;  ///< Of the group; shared by the members of one coalesced launch.
  int64_t p2p_sequence = kNotRecorded;
  int64_t operation_id = kNotRecorded;  ///< Counts logical operations of the group, p2p included.
  int64_t created_unix_ns = kNotRecorded;
  int64_t started_unix_ns = kNotRecorded;    ///< When the watchdog noticed, up to a poll later.
  int64_t completed_unix_ns = kNotRecorded;  ///< Likewise.
  int64_t duration_ns = kNotRecorded;
  int64_t timeout_ns = kNotRecorded;
  uint32_t group = 0;        ///< Into FlightRecord::groups.
  uint32_t operation = 0;    ///< profiling_name, such as "nccl:all_reduce"; into texts.
  uint32_t input_sizes = 0;  ///< Into FlightRecord::size_lists.
  uint32_t output_sizes = 0;
  uint32_t input_dtypes = 0;  ///< Comma-separated; into texts.
  uint32_t output_dtypes = 0;
  uint32_t stack = 0;        ///< Into FlightRecord::stacks; innermost frame first; 0 = none.
  uint32_t thread_name = 0;  ///< Into texts.
  int64_t thread_id = kNotRecorded;
  EntryState state = EntryState::kUnknown;
  Tristate retired = Tristate::kUnknown;
  bool is_p2p = false;
};

/// A process group as one process describes it. Its name is equal on all ranks, its local id is not.
struct FlightGroup {
  int64_t local_id = kNotRecorded;
  std::string name;  ///< pg_config's key and an entry's process_group[0]; empty from Gloo's broken configuration.
  std::string description;     ///< Free text, often shared by sibling groups.
  std::vector<int32_t> ranks;  ///< Global, in group order; empty = unknown. Not to be trusted where `name` is empty.
  int64_t last_enqueued = kNotRecorded;  ///< pg_status; its -1 ("never") is kept, NCCL counts from 1.
  int64_t last_started = kNotRecorded;
  int64_t last_completed = kNotRecorded;
};

/// One process's flight-recorder dump. Source of the format: docs/formats/flight-recorder.md.
struct FlightRecord {
  std::string version;          ///< "2.10"; empty: the bare list of entries of old versions.
  std::string library_version;  ///< "2.27.3"; empty for Gloo.
  std::vector<FlightGroup> groups;
  std::vector<FlightEntry> entries;                           ///< Oldest first.
  std::vector<std::string> texts;                             ///< [0] is empty.
  std::vector<std::vector<std::vector<int64_t>>> size_lists;  ///< [0] is empty. A list of shapes.
  std::vector<std::vector<FlightFrame>> stacks;               ///< [0] is empty.
  bool truncated = false;                                     ///< The file ended early; this is the part before it.
  std::vector<std::string> notes;  ///< Oddities that did not stop the reading: unknown keys, another major version.
};

}  // namespace lockstep::evidence
