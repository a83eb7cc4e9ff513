#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/nsight/database.h"
#include "ingest/nsight/nccl_payload.h"
#include "ingest/nsight/process_events.h"
#include "ingest/nsight/report_notes.h"
#include "ingest/nsight/string_table.h"
#include "ingest/torch_trace/trace_reader.h"
#include "model/name_table.h"

namespace lockstep::ingest::nsight {

/// Column of NVTX_EVENTS that the rows of a JSON export have where a range came with a payload's bytes.
inline constexpr const char* kPayloadBase64Column = "payloadBase64";

/// The events of a report while its tables are walked one after another. Times are the report's own.
class ReportEvents {
 public:
  ReportEvents(const Database& database, const TraceReaderOptions& options, ReportNotes* notes)
      : database_(database), options_(options), notes_(notes) {}

  /// Walks every table that holds events of the model: strings first, then device, calls, ranges, MPI, the rest.
  /// Errors: kCancelled.
  Status Read();

  std::map<int64_t, std::unique_ptr<ProcessEvents>>& processes() { return processes_; }
  model::NameTable& names() { return names_; }
  /// By pid << 24 | tid.
  const std::map<int64_t, NameId>& thread_names() const { return thread_names_; }
  const StringTable& strings() const { return strings_; }
  /// Rank of a process (globalPid) as MPI or its own threads' names say, and MPI's world.
  const std::map<int64_t, int32_t>& mpi_ranks() const { return mpi_ranks_; }
  std::optional<int32_t> mpi_world() const { return mpi_world_; }
  /// Ranks and own rank of the communicators that NCCL's payloads name, by process.
  const std::multimap<int64_t, std::pair<int32_t, int32_t>>& nccl_ranks() const { return nccl_ranks_; }
  uint64_t kernel_count() const { return kernel_count_; }
  uint64_t graph_count() const { return graph_count_; }
  uint64_t call_count() const { return call_count_; }
  /// Whether the recording began while the program ran: things were made before it, or the program began it itself.
  bool began_midway() const { return began_midway_; }
  /// Whether device events say which process they are of.
  bool knows_processes() const { return knows_processes_; }

 private:
  static constexpr uint64_t kReportedEvents = 4096;
  struct Span {
    int64_t start_ns = 0;
    int64_t duration_ns = 0;
  };
  struct Wait {
    int64_t process = 0;
    int64_t handle = 0;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    friend auto operator<=>(const Wait&, const Wait&) = default;
  };
  struct Communicator {
    std::string name;
    std::string members;
    std::optional<int32_t> size;
  };
  struct RecordedEvent {
    int64_t stream = 0;
    uint32_t correlation = 0;
  };
  /// An NVTX range; texts are the row's own.
  struct Range {
    Span span;
    int64_t global_tid = 0;
    std::string_view text;
    uint32_t string = StringTable::kNone;  ///< Of `text`, where it is one of StringIds.
    std::string_view payload;              ///< JSON text.
    std::string_view payload_base64;       ///< Its bytes; where there are any there is no text.
  };
  /// One that waits for its domain's name, or for the end of the recording.
  struct PendingRange {
    Range range;
    int64_t domain = 0;
    std::string text;
    std::string payload;
    std::string payload_base64;
  };
  /// RegionOf's result for a text.
  struct KnownRegion {
    NameId name;
    model::Category category = model::Category::kUserAnnotation;
    bool is_collective = false;
    bool is_known = false;
  };

  void ReadKernels();
  void ReadCopies();
  void ReadSets();
  void ReadGraphs();
  void ReadRecordedEvents();
  void ReadSynchronisations();
  void ReadMemory();
  void ReadCalls();
  void ReadRanges();
  void AddRange(const Range& range, std::string_view domain);
  NcclPayload PayloadOf(const Range& range);
  KnownRegion RegionOfRange(const Range& range, std::string_view domain);
  void ReadThreadNames();
  void ReadWaits();
  void ReadCommunicators();
  void ReadMpiCollectives();
  void ReadMpiMessages();
  void ReadMpiCalls();
  void AddMpi(const Span& span, int64_t global_tid, NameId name);
  void ReadOsCalls();
  void ReadOverhead();

  /// Start and end of the present row, or nothing where there is none to be had.
  bool ReadSpan(const TableScan& rows, Span* span);
  /// Visits every row; counts, stops when cancelled, and says when a table ends early.
  template <typename Visit>
  void ForEach(TableScan* rows, const char* table, Visit visit) {
    if (cancelled_) return;
    rows->ForEach([&] {
      if (++unreported_ >= kReportedEvents) ReportEventCount(rows);
      visit();
    });
    if (!rows->failure().empty()) NoteDamage(*rows, table);
  }
  void ReportEventCount(TableScan* rows);
  void NoteDamage(const TableScan& rows, const char* table);
  ProcessEvents& Process(int64_t global_pid);
  NameId Intern(std::string_view text);
  NameId StringName(int64_t id);
  NameId CallNameOf(int64_t id, bool* is_driver);
  NameId MpiName(int64_t id);
  int64_t EndOfRequest(int64_t process, std::optional<int64_t> handle, const Span& call) const;
  void FillGroup(int64_t process, std::optional<int64_t> handle, model::CollectiveRecord* record);
  static uint32_t Correlation(const TableScan& rows, int column);

  const Database& database_;
  const TraceReaderOptions& options_;
  ReportNotes* const notes_;
  StringTable strings_;
  model::NameTable names_;
  std::map<int64_t, std::unique_ptr<ProcessEvents>> processes_;
  ProcessEvents* last_process_ = nullptr;
  std::vector<uint32_t> string_names_;  // by index of strings_: NameId + 1
  std::vector<uint32_t> call_names_;    // by index of strings_: NameId * 2 + is driver + 1
  std::vector<uint32_t> mpi_names_;     // by index of strings_: NameId + 1
  std::map<int64_t, NameId> thread_names_;
  std::map<std::pair<int64_t, int64_t>, std::string> domains_;  // (process, domain) -> name
  std::vector<KnownRegion> regions_;                            // by index of strings_, without a domain
  std::vector<Wait> waits_;
  std::map<std::pair<int64_t, int64_t>, Communicator> communicators_;  // (process, handle)
  std::map<std::pair<int64_t, int64_t>, RecordedEvent> events_by_sync_;
  std::map<int64_t, int32_t> mpi_ranks_;
  std::multimap<int64_t, std::pair<int32_t, int32_t>> nccl_ranks_;  // by process: (ranks of a communicator, own)
  std::optional<int32_t> mpi_world_;
  int64_t last_end_ns_ = INT64_MIN;
  uint64_t kernel_count_ = 0;
  uint64_t graph_count_ = 0;
  uint64_t call_count_ = 0;
  uint64_t unknown_payload_count_ = 0;
  bool knows_processes_ = true;
  bool began_midway_ = false;
  uint64_t unreported_ = 0;
  bool cancelled_ = false;
  std::string scratch_;
};

}  // namespace lockstep::ingest::nsight
