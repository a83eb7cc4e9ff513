#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "ingest/nsight/event_names.h"
#include "ingest/nsight/report_events.h"

namespace lockstep::ingest::nsight {

using model::Category;
using model::Lane;

void ReportEvents::ReadKernels() {
  constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_KERNEL";
  TableScan rows(database_, kTable,
                 {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName", "shortName"});
  if (database_.Has(kTable) && !database_.Has(kTable, "globalPid")) knows_processes_ = false;
  ForEach(&rows, kTable, [&] {
    Span span;
    if (!ReadSpan(rows, &span)) return;
    const NameId name = StringName(rows.IsNull(6) ? rows.Int(7) : rows.Int(6));
    Process(ProcessOf(rows.Int(5)))
        .Writer(Lane::kDevice, rows.Int(2), rows.Int(3))
        .Add(span.start_ns, span.duration_ns, name, Category::kKernel, Correlation(rows, 4));
    ++kernel_count_;
  });
}

void ReportEvents::ReadCopies() {
  constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_MEMCPY";
  TableScan rows(
      database_, kTable,
      {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "copyKind", "srcKind", "dstKind"});
  constexpr int64_t kKinds = 16;
  std::array<std::optional<NameId>, kKinds * kKinds * kKinds> names;
  ForEach(&rows, kTable, [&] {
    Span span;
    if (!ReadSpan(rows, &span)) return;
    const int64_t kind = rows.Int(6);
    const std::optional<int64_t> from = rows.MaybeInt(7);
    const std::optional<int64_t> to = rows.MaybeInt(8);
    const auto digit = [](std::optional<int64_t> value) {
      return value ? std::clamp<int64_t>(*value, -1, kKinds - 3) + 2 : 0;
    };
    std::optional<NameId>& name = names[static_cast<size_t>((digit(kind) * kKinds + digit(from)) * kKinds + digit(to))];
    if (!name) name = Intern(MemcpyName(kind, from, to));
    Process(ProcessOf(rows.Int(5)))
        .Writer(Lane::kDevice, rows.Int(2), rows.Int(3))
        .Add(span.start_ns, span.duration_ns, *name, Category::kMemcpy, Correlation(rows, 4));
  });
}

void ReportEvents::ReadSets() {
  constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_MEMSET";
  TableScan rows(database_, kTable, {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "memKind"});
  ForEach(&rows, kTable, [&] {
    Span span;
    if (!ReadSpan(rows, &span)) return;
    Process(ProcessOf(rows.Int(5)))
        .Writer(Lane::kDevice, rows.Int(2), rows.Int(3))
        .Add(span.start_ns, span.duration_ns, Intern(MemsetName(rows.MaybeInt(6))), Category::kMemset,
             Correlation(rows, 4));
  });
}

/// A graph traced as a whole keeps its stream busy like one long kernel, which is what is known of it.
void ReportEvents::ReadGraphs() {
  constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
  TableScan rows(database_, kTable, {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphId"});
  ForEach(&rows, kTable, [&] {
    Span span;
    if (!ReadSpan(rows, &span)) return;
    Process(ProcessOf(rows.Int(5)))
        .Writer(Lane::kDevice, rows.Int(2), rows.Int(3))
        .Add(span.start_ns, span.duration_ns, Intern(fmt::format("CUDA graph {}", rows.Int(6))), Category::kKernel,
             Correlation(rows, 4));
    ++graph_count_;
  });
}

void ReportEvents::ReadRecordedEvents() {
  constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
  // Event ids are used again; only the id of the synchronisation (schema 3.20 and later) joins a wait to its record.
  if (!database_.Has(kTable, "eventSyncId")) return;
  TableScan rows(database_, kTable, {"globalPid", "eventSyncId", "streamId", "correlationId"});
  ForEach(&rows, kTable, [&] {
    if (rows.IsNull(1)) return;
    events_by_sync_.insert_or_assign({ProcessOf(rows.Int(0)), rows.Int(1)},
                                     RecordedEvent{rows.Int(2), Correlation(rows, 3)});
  });
}

void ReportEvents::ReadSynchronisations() {
  constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
  TableScan rows(database_, kTable,
                 {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "syncType", "eventSyncId"});
  ForEach(&rows, kTable, [&] {
    Span span;
    if (!ReadSpan(rows, &span)) return;
    model::SyncRecord record;
    record.kind = SyncKind(rows.MaybeInt(6));
    record.start_ns = span.start_ns;
    record.duration_ns = span.duration_ns;
    record.device = rows.Int(2);
    record.correlation = Correlation(rows, 4);
    // Streams are 32 bits without a sign; all ones: no stream, a whole context.
    const int64_t stream = rows.IsNull(3) ? -1 : rows.Int(3);
    if (stream >= 0 && stream < UINT32_MAX) record.stream = stream;
    const int64_t process = ProcessOf(rows.Int(5));
    if (!rows.IsNull(7)) {
      const auto event = events_by_sync_.find({process, rows.Int(7)});
      if (event != events_by_sync_.end()) {
        record.event_stream = event->second.stream;
        record.event_record_correlation = event->second.correlation;
      }
    }
    ProcessEvents& events = Process(process);
    events.Writer(Lane::kOther, record.device, record.stream.value_or(-1))
        .Add(span.start_ns, span.duration_ns, Intern(SyncName(record.kind)), Category::kSync, 0);
    events.Synchronisation(record);
  });
}

void ReportEvents::ReadMemory() {
  constexpr const char* kTable = "CUDA_GPU_MEMORY_USAGE_EVENTS";
  TableScan rows(database_, kTable, {"start", "globalPid", "deviceId", "bytes", "memKind", "memoryOperationType"});
  ForEach(&rows, kTable, [&] {
    constexpr int64_t kPinned = 1;
    if (rows.IsNull(0) || rows.IsNull(3) || rows.IsNull(5)) return;
    const int64_t device = rows.Int(2);
    const int64_t bytes = std::clamp<int64_t>(rows.Int(3), 0, INT64_MAX / 4096);
    const bool on_host = !rows.IsNull(4) && rows.Int(4) <= kPinned;
    Process(ProcessOf(rows.Int(1)))
        .Memory({rows.Int(0), rows.Int(5) == 0 ? bytes : -bytes,
                 on_host || device < 0 || device > INT16_MAX ? int16_t{-1} : static_cast<int16_t>(device)});
  });
}

void ReportEvents::ReadCalls() {
  constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
  TableScan rows(database_, kTable, {"start", "end", "globalTid", "correlationId", "nameId"});
  ForEach(&rows, kTable, [&] {
    Span span;
    if (!ReadSpan(rows, &span)) return;
    bool is_driver = false;
    const NameId name = CallNameOf(rows.Int(4), &is_driver);
    const int64_t tid = rows.Int(2);
    if (call_count_ == 0 && names_[name] == "cudaProfilerStart") began_midway_ = true;
    Process(ProcessOf(tid))
        .Writer(Lane::kRuntime, PidOf(tid), TidOf(tid))
        .Add(span.start_ns, span.duration_ns, name, is_driver ? Category::kDriver : Category::kRuntime,
             Correlation(rows, 3));
    ++call_count_;
  });
}

}  // namespace lockstep::ingest::nsight
