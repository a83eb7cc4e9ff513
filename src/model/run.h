#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "model/clock.h"
#include "model/counter.h"
#include "model/event.h"
#include "model/event_holders.h"
#include "model/ledger.h"
#include "model/name_table.h"
#include "model/operation_trace.h"
#include "model/span.h"

namespace lockstep::model {

struct KernelProfiles;  // model/kernel_profile.h
struct RankStages;      // model/stages/rank_stages.h

/// How a rank became known, in order of trust.
enum class RankSource : uint8_t { kDistributedInfo, kFileName, kOrder };
const char* RankSourceName(RankSource source);

struct Device {
  DeviceOrdinal ordinal;
  std::string name;
  std::optional<int64_t> memory_bytes = {};
  std::optional<int32_t> multiprocessor_count = {};
};

/// A process group as `pg_config` of distributedInfo describes it.
struct ProcessGroup {
  std::string name;
  std::string description;
  std::string backend;
  std::optional<int32_t> size = {};
  std::vector<int32_t> ranks = {};  ///< Global ranks; empty when the file does not list them.
};

/// What is known of events that another process holds (model/event_holders.h).
struct HeldElsewhere {
  std::vector<DeviceOrdinal> device_ordinals;  ///< As RankTrace::DeviceOrdinals.
};

/// One trace file: one rank's window of time.
struct RankTrace {
  Rank rank;
  RankSource rank_source = RankSource::kOrder;
  int32_t window = 0;  ///< 0 for the first window of a rank in time, 1 for the next, ...
  std::optional<int32_t> world_size = {};
  std::string host;     ///< Empty when unknown.
  std::string source;   ///< Path, with "!member" for a file inside an archive.
  std::string backend;  ///< distributedInfo.backend ("nccl", "gloo"), or empty.
  std::vector<ProcessGroup> groups;
  std::vector<Device> devices;   ///< As in deviceProperties: every device of the host.
  bool base_time_known = false;  ///< baseTimeNanoseconds or absolute times: start_ns is wall-clock.
  /// The recording began while the program ran: waits in its first collectives may be those for the profiler.
  bool began_midway = false;

  std::vector<Track> tracks;                  ///< Sorted by (lane, process_id, thread_id).
  std::vector<CollectiveRecord> collectives;  ///< Sorted by start_ns.
  std::vector<SyncRecord> synchronisations;   ///< Sorted by start_ns; only where the profiler recorded them.
  MemoryColumns memory;                       ///< Sorted by time_ns.
  std::vector<OperatorShape> shapes;          ///< Sorted by start_ns.
  std::vector<CounterSeries> counters;        ///< Sorted by (device, name).
  std::vector<LinkedSpan> linked_spans;       ///< Sorted by start_ns.
  std::vector<RequestRecord> requests;        ///< Sorted by start_ns.

  uint64_t event_count = 0;              ///< Elements of traceEvents, of every kind.
  uint64_t complete_event_count = 0;     ///< Events kept in tracks.
  uint64_t json_bytes = 0;               ///< Decompressed.
  std::optional<int64_t> first_ns = {};  ///< Smallest start of any kept event.
  std::optional<int64_t> last_ns = {};   ///< Largest end of any kept event.

  ClockMap clock;
  /// Times are RunNs already, corrected when `lockstep merge` wrote the file; `clock` says how well.
  bool clock_is_aligned = false;

  /// Set where another process holds the events (what SwapEvents names), which are empty here.
  std::optional<HeldElsewhere> elsewhere = {};

  /// Exchanges what is recorded event by event: tracks, collectives, synchronisations, memory, shapes, counters,
  /// spans and requests. The rest is what travels of a trace without its events.
  void SwapEvents(RankTrace* other);
  bool HasDeviceEvents() const;
  /// Devices with events, ascending.
  std::vector<DeviceOrdinal> DeviceOrdinals() const;
};

/// Does `trace` count its time from elsewhere than `first`, with nothing to join them? One of the two lost the base
/// that makes its times wall-clock (a cut file), and no collective told the offset. Their instants cannot be compared.
inline bool IsAdrift(const RankTrace& first, const RankTrace& trace) {
  return trace.clock.basis == ClockMap::Basis::kWallClock && trace.base_time_known != first.base_time_known;
}

/// A job: every rank's trace, one table of names, one ledger. Filled by ingest; `clock` of each rank by
/// analysis/alignment.
struct Run {
  std::vector<RankTrace> ranks;  ///< Sorted by (window, rank).
  NameTable names;
  Ledger ledger;
  std::unique_ptr<EventHolders> holders = {};  ///< Null: the events are in `ranks`.
  /// The job told in operations instead of events; `ranks` then say who took part, and have no tracks.
  std::optional<OperationTrace> operations = {};
  /// Tables of Nsight Compute and `nsys stats` that lay beside the traces; null: none.
  std::shared_ptr<const KernelProfiles> kernel_profiles = {};
  /// Steps in stages of the job's ranks, by rank, that its span traces hold; null: none.
  std::shared_ptr<const std::vector<RankStages>> stages = {};
};

}  // namespace lockstep::model
