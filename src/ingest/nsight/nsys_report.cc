#include "ingest/nsight/nsys_report.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "ingest/nsight/database.h"
#include "ingest/nsight/metric_tables.h"
#include "ingest/nsight/read_report.h"
#include "ingest/nsight/report_events.h"
#include "ingest/nsight/report_facts.h"
#include "ingest/nsight/report_notes.h"
#include "ingest/nsight/report_ranks.h"

namespace lockstep::ingest {
namespace {

using model::Severity;
using nsight::Database;
using nsight::ReportEvents;
using nsight::ReportFacts;
using nsight::ReportNotes;

constexpr const char* kEventTables[] = {"CUPTI_ACTIVITY_KIND_KERNEL",
                                        "CUPTI_ACTIVITY_KIND_MEMCPY",
                                        "CUPTI_ACTIVITY_KIND_MEMSET",
                                        "CUPTI_ACTIVITY_KIND_RUNTIME",
                                        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                                        "NVTX_EVENTS",
                                        "OSRT_API",
                                        "MPI_COLLECTIVES_EVENTS",
                                        "MPI_P2P_EVENTS",
                                        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                        "PROFILER_OVERHEAD",
                                        "GPU_METRICS",
                                        "NET_NIC_METRIC",
                                        "TARGET_INFO_SESSION_START_TIME"};

/// Tables that hold events and are not read.
constexpr const char* kUnreadTables[] = {"NET_IB_SWITCH_METRIC",
                                         "SCHED_EVENTS",
                                         "COMPOSITE_EVENTS",
                                         "SAMPLING_CALLCHAINS",
                                         "OSRT_CALLCHAINS",
                                         "OSRT_FILE_ACCESS",
                                         "CUDA_CALLCHAINS",
                                         "CUDA_GPU_MEMORY_POOL_EVENTS",
                                         "CUDA_GRAPH_NODE_EVENTS",
                                         "UCP_SUBMIT_EVENTS",
                                         "UCP_PROGRESS_EVENTS",
                                         "CUBLAS_EVENTS",
                                         "CUDNN_EVENTS",
                                         "GPU_CONTEXT_SWITCH_EVENTS",
                                         "FECS_EVENTS",
                                         "CUPTI_ACTIVITY_KIND_OPENACC_DATA",
                                         "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH",
                                         "CUPTI_ACTIVITY_KIND_OPENACC_OTHER"};

bool IsNsysExport(const Database& database) {
  return database.Has("META_DATA_EXPORT") || database.Has("EXPORT_META_DATA") ||
         std::any_of(std::begin(kEventTables), std::end(kEventTables),
                     [&](const char* table) { return database.Has(table); });
}

void NoteMissing(const ReportFacts& facts, const ReportEvents& events, ReportNotes* notes) {
  if (events.graph_count() > 0) {
    notes->Add(
        "nsys_graphs_whole", Severity::kWarning,
        "CUDA graphs were traced as a whole: each launch counts as one kernel, and the kernels inside are not visible",
        "record with --cuda-graph-trace=node", events.graph_count());
  }
  if (events.kernel_count() + events.graph_count() > 0) return;
  if (!facts.asked_for_cuda && events.call_count() == 0) {
    notes->Add("nsys_no_kernels", Severity::kInfo, "the report holds no kernels: CUDA was not traced",
               "record with --trace=cuda,nvtx to see the devices");
    return;
  }
  notes->Add("nsys_no_kernels", Severity::kWarning,
             fmt::format("the report holds no kernels (CUPTI_ACTIVITY_KIND_KERNEL is missing or empty){}",
                         events.call_count() > 0 ? " although the program called CUDA" : ""),
             "another tool may have held CUPTI (torch.profiler) or the counters (DCGM), or hardware tracing failed: "
             "record with --trace=cuda-sw,nvtx where nsys knows it, and without torch.profiler");
}

void NoteUnread(Database* database, ReportNotes* notes) {
  std::string names;
  for (const char* table : kUnreadTables) {
    if (database->HasRows(table)) names += fmt::format("{}{}", names.empty() ? "" : ", ", table);
  }
  if (names.empty()) return;
  notes->Add("nsys_unread_tables", Severity::kInfo,
             fmt::format("the report also contains data that is not read: {}", names));
}

/// A write-ahead log beside the file holds rows that were never moved into it.
void NoteLog(const std::string& path, ReportNotes* notes) {
  struct stat status = {};
  if (path.empty() || ::stat((path + "-wal").c_str(), &status) != 0 || status.st_size == 0) return;
  notes->Add("nsys_log_ignored", Severity::kWarning, "a write-ahead log lies beside the file; its content was not read",
             "open the file once with sqlite3 and close it, or export the report again");
}

std::vector<model::Device> DevicesOf(const ReportFacts& facts, int64_t pid) {
  const auto own = facts.by_pid.find(pid);
  std::vector<model::Device> devices = own != facts.by_pid.end() ? own->second : facts.devices;
  std::sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) { return a.ordinal < b.ordinal; });
  return devices;
}

/// Of where the process's ranges and device events begin, against the first of them: the same in every form of export,
/// whatever was added to its times and whichever other tables it lacks.
uint64_t RecordingOf(const model::RankTrace& trace) {
  constexpr uint64_t kPrime = 0x9e3779b97f4a7c15;
  int64_t first_ns = INT64_MAX;
  const auto is_told = [](const model::Track& track) {
    return !track.events.start_ns.empty() &&
           (track.lane == model::Lane::kOperators || track.lane == model::Lane::kDevice);
  };
  for (const model::Track& track : trace.tracks) {
    if (is_told(track)) first_ns = std::min(first_ns, track.events.start_ns[0]);
  }
  uint64_t digest = 0;
  size_t count = 0;
  for (const model::Track& track : trace.tracks) {
    if (!is_told(track)) continue;
    count += track.events.size();
    uint64_t own = static_cast<uint64_t>(track.lane) + 1;
    const auto mix = [&own](int64_t value) { own = (std::rotl(own, 23) ^ static_cast<uint64_t>(value)) * kPrime; };
    mix(track.process_id);
    mix(track.thread_id);
    for (const int64_t start_ns : track.events.start_ns) mix(start_ns - first_ns);
    digest += own;
  }
  return count < 2 ? 0 : digest;
}

}  // namespace

bool StartsNsysExport(std::string_view bytes) { return nsight::StartsSqlite(bytes); }

Result<std::vector<TraceContent>> ReadNsysExport(ByteSource& source, const std::string& path,
                                                 const std::string& display_name, const TraceReaderOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Database> database,
                   path.empty() ? Database::Spool(source, display_name) : Database::Open(path));
  if (!IsNsysExport(*database)) {
    return Error{.code = ErrorCode::kCorruptData,
                 .message =
                     "is an SQLite database that Nsight Systems did not write; give what `nsys export -t sqlite` "
                     "writes",
                 .file = display_name};
  }
  ReportNotes notes(display_name);
  if (database->cut()) {
    notes.Add("damaged_stream", Severity::kError, database->cut()->message, "what came before was read");
  }
  NoteLog(path, &notes);
  return nsight::ReadReport(database.get(), {.display_name = display_name, .size_bytes = database->size_bytes()},
                            options, &notes);
}

namespace nsight {

Result<std::vector<TraceContent>> ReadReport(Database* database, const ReportFile& file,
                                             const TraceReaderOptions& options, ReportNotes* notes) {
  ReportFacts facts = ReadFacts(*database, notes);
  facts.launches = file.launches;
  ReportEvents events(*database, options, notes);
  RETURN_IF_ERROR(events.Read());
  if (events.began_midway()) {
    notes->Add("capture_began_midway", Severity::kInfo,
               "the recording began while the program ran: waits in the first collectives may be those for nsys");
  }
  NoteMissing(facts, events, notes);
  NoteUnread(database, notes);
  std::vector<ReportRank> ranks = FindRanks(facts, &events, notes);

  std::vector<TraceContent> contents(std::max<size_t>(ranks.size(), 1));
  std::vector<int64_t> pids;
  std::vector<model::RankTrace*> traces;
  for (size_t i = 0; i < contents.size(); ++i) {
    TraceContent& content = contents[i];
    model::RankTrace& trace = content.trace;
    trace.source = file.display_name;
    trace.host = facts.host;
    trace.json_bytes = i == 0 ? file.size_bytes : 0;
    trace.base_time_known = facts.base_ns.has_value();
    trace.began_midway = events.began_midway();
    content.several_processes = contents.size() > 1;
    traces.push_back(&trace);
    if (i >= ranks.size()) {
      pids.push_back(0);
      continue;
    }
    ReportRank& rank = ranks[i];
    trace.world_size = rank.world_size;
    pids.push_back(PidOf(rank.events->global_pid()));
    trace.devices = DevicesOf(facts, pids.back());
    content.has_rank = rank.rank.has_value();
    trace.rank = {rank.rank.value_or(0)};
    rank.events->Finish(facts.base_ns.value_or(0), events.thread_names(), &trace);
    rank.events.reset();
    content.recording = RecordingOf(trace);
  }
  GiveCounters(ReadMetrics(*database, options.cancelled, notes), facts, pids, traces, notes);
  notes->WriteRows();
  contents.front().names = std::move(events.names());
  contents.front().ledger = notes->Take();
  return contents;
}

}  // namespace nsight
}  // namespace lockstep::ingest
