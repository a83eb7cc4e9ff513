#include "ingest/nsight/report_events.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "ingest/nsight/event_names.h"

namespace lockstep::ingest::nsight {
namespace {

constexpr size_t kMaxNameBytes = size_t{64} << 10;
/// Far enough from the ends of int64 that sums with a base and durations cannot overflow.
constexpr int64_t kMaxTimeNs = INT64_MAX / 4;

}  // namespace

Status ReportEvents::Read() {
  const std::string failure = strings_.Load(database_);
  if (!failure.empty()) {
    notes_->Add(
        "damaged_table", model::Severity::kError,
        fmt::format("StringIds is damaged after {} rows ({}): later names are missing", strings_.size(), failure),
        "copy or export the report again");
  }
  ReadKernels();
  ReadCopies();
  ReadSets();
  ReadGraphs();
  ReadRecordedEvents();
  ReadSynchronisations();
  ReadMemory();
  ReadCalls();
  ReadWaits();
  ReadCommunicators();
  ReadMpiCollectives();
  ReadMpiMessages();
  ReadMpiCalls();
  ReadOsCalls();
  ReadOverhead();
  ReadThreadNames();
  ReadRanges();  // Last: what was never closed ends with the recording.
  if (options_.on_events && unreported_ > 0) options_.on_events(unreported_);
  if (cancelled_) return Error{.code = ErrorCode::kCancelled, .message = "reading was cancelled"};
  return {};
}

void ReportEvents::ReportEventCount(TableScan* rows) {
  if (options_.on_events) options_.on_events(unreported_);
  unreported_ = 0;
  if (!options_.cancelled || !options_.cancelled()) return;
  cancelled_ = true;
  rows->Stop();
}

void ReportEvents::NoteDamage(const TableScan& rows, const char* table) {
  notes_->AddDamagedTable(table, rows.row_count(), rows.failure());
}

bool ReportEvents::ReadSpan(const TableScan& rows, Span* span) {
  if (rows.IsNull(0)) {
    notes_->CountRow(kNoStart);
    return false;
  }
  span->start_ns = rows.Int(0);
  const int64_t end_ns = rows.IsNull(1) ? span->start_ns : rows.Int(1);
  if (span->start_ns > kMaxTimeNs || span->start_ns < -kMaxTimeNs || end_ns > kMaxTimeNs || end_ns < -kMaxTimeNs) {
    notes_->CountRow(kOverflow);
    return false;
  }
  span->duration_ns = end_ns - span->start_ns;
  if (span->duration_ns < 0) {
    notes_->CountRow(kNegative);
    span->duration_ns = 0;
  }
  last_end_ns_ = std::max(last_end_ns_, end_ns);
  return true;
}

ProcessEvents& ReportEvents::Process(int64_t global_pid) {
  if (last_process_ != nullptr && last_process_->global_pid() == global_pid) return *last_process_;
  std::unique_ptr<ProcessEvents>& process = processes_[global_pid];
  if (process == nullptr) process = std::make_unique<ProcessEvents>(global_pid);
  last_process_ = process.get();
  return *last_process_;
}

NameId ReportEvents::Intern(std::string_view text) {
  text = text.substr(0, kMaxNameBytes);
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f;
  });
  if (plain) return names_.Intern(text);
  scratch_ = ValidUtf8(text);
  std::replace_if(
      scratch_.begin(), scratch_.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return names_.Intern(scratch_);
}

NameId ReportEvents::StringName(int64_t id) {
  const uint32_t index = strings_.IndexOf(id);
  if (index == StringTable::kNone) return Intern(fmt::format("[string {} is missing]", id));
  if (string_names_.empty()) string_names_.resize(strings_.size());
  uint32_t& name = string_names_[index];
  if (name == 0) name = Intern(strings_.At(index)).value + 1;
  return {name - 1};
}

NameId ReportEvents::CallNameOf(int64_t id, bool* is_driver) {
  const uint32_t index = strings_.IndexOf(id);
  if (index == StringTable::kNone) {
    *is_driver = false;
    return StringName(id);
  }
  if (call_names_.empty()) call_names_.resize(strings_.size());
  uint32_t& name = call_names_[index];
  if (name == 0) {
    const std::string_view text = CallName(strings_.At(index));
    name = Intern(text).value * 2 + (IsDriverCall(text) ? 1 : 0) + 1;
  }
  *is_driver = ((name - 1) & 1) != 0;
  return {(name - 1) / 2};
}

uint32_t ReportEvents::Correlation(const TableScan& rows, int column) {
  const int64_t value = rows.Int(column);
  return value >= 0 && value <= UINT32_MAX ? static_cast<uint32_t>(value) : 0;
}

void ReportEvents::ReadThreadNames() {
  TableScan rows(database_, "ThreadNames", {"nameId", "globalTid"});
  ForEach(&rows, "ThreadNames", [&] {
    // Those of every process of the host: only threads with events are kept.
    const int64_t global_tid = rows.Int(1);
    if (!processes_.contains(ProcessOf(global_tid)) || rows.IsNull(0)) return;
    thread_names_.try_emplace(PidOf(global_tid) << 24 | TidOf(global_tid), StringName(rows.Int(0)));
  });
}

void ReportEvents::ReadOsCalls() {
  TableScan rows(database_, "OSRT_API", {"start", "end", "globalTid", "nameId"});
  ForEach(&rows, "OSRT_API", [&] {
    Span span;
    if (!ReadSpan(rows, &span)) return;
    const int64_t tid = rows.Int(2);
    Process(ProcessOf(tid))
        .Writer(model::Lane::kOther, PidOf(tid), TidOf(tid))
        .Add(span.start_ns, span.duration_ns, StringName(rows.Int(3)), model::Category::kOther, 0);
  });
}

void ReportEvents::ReadOverhead() {
  for (const char* table : {"PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"}) {
    TableScan rows(database_, table, {"start", "end", "globalTid", "nameId"});
    ForEach(&rows, table, [&] {
      Span span;
      if (!ReadSpan(rows, &span) || rows.IsNull(2)) return;
      const int64_t tid = rows.Int(2);
      Process(ProcessOf(tid))
          .Writer(model::Lane::kOther, PidOf(tid), TidOf(tid))
          .Add(span.start_ns, span.duration_ns, StringName(rows.Int(3)), model::Category::kOverhead, 0);
    });
  }
}

}  // namespace lockstep::ingest::nsight
