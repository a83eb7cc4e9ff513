#include <fmt/format.h>

#include <algorithm>

#include "ingest/nsight/event_names.h"
#include "ingest/nsight/report_events.h"

namespace lockstep::ingest::nsight {
namespace {

using model::Lane;

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool IsSendReceive(std::string_view name) { return Contains(name, "Sendrecv"); }
bool IsSend(std::string_view name) { return Contains(name, "send") || Contains(name, "Send"); }
bool IsReceive(std::string_view name) { return Contains(name, "recv") || Contains(name, "Recv"); }

std::optional<int32_t> RankOf(std::optional<int64_t> value) {
  // Below zero: any source, no process.
  if (!value || *value < 0 || *value > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(*value);
}

}  // namespace

NameId ReportEvents::MpiName(int64_t id) {
  const uint32_t index = strings_.IndexOf(id);
  if (index == StringTable::kNone) return StringName(id);
  if (mpi_names_.empty()) mpi_names_.resize(strings_.size());
  uint32_t& name = mpi_names_[index];
  if (name == 0) name = Intern(MpiCallName(strings_.At(index))).value + 1;
  return {name - 1};
}

void ReportEvents::ReadWaits() {
  constexpr const char* kTable = "MPI_START_WAIT_EVENTS";
  TableScan rows(database_, kTable, {"start", "end", "globalTid", "textId", "requestHandle"});
  ForEach(&rows, kTable, [&] {
    Span span;
    if (!ReadSpan(rows, &span)) return;
    const int64_t tid = rows.Int(2);
    AddMpi(span, tid, MpiName(rows.Int(3)));
    // A start begins a persistent request and ends none.
    if (rows.IsNull(4) || Contains(strings_.Of(rows.Int(3)), "Start")) return;
    waits_.push_back({ProcessOf(tid), rows.Int(4), span.start_ns, span.start_ns + span.duration_ns});
  });
  std::sort(waits_.begin(), waits_.end());
}

void ReportEvents::ReadCommunicators() {
  TableScan ranks(database_, "MPI_RANKS", {"globalTid", "rank"});
  ForEach(&ranks, "MPI_RANKS", [&] {
    if (const auto rank = RankOf(ranks.MaybeInt(1))) mpi_ranks_.insert_or_assign(ProcessOf(ranks.Int(0)), *rank);
  });
  // Handles are addresses of each process; a communicator is recognised across processes by its members.
  TableScan rows(database_, "MPI_COMMUNICATORS",
                 {"rank", "commHandle", "parentHandle", "size", "groupRootUid", "members"});
  std::map<int64_t, int> made_of_size;
  ForEach(&rows, "MPI_COMMUNICATORS", [&] {
    if (rows.IsNull(1)) return;
    Communicator communicator;
    communicator.size = RankOf(rows.MaybeInt(3));
    if (communicator.size) mpi_world_ = std::max(mpi_world_.value_or(0), *communicator.size);
    communicator.members = rows.Text(5);
    const int number = made_of_size[communicator.size.value_or(0)]++;
    if (rows.IsNull(2) || rows.Int(2) == 0) {
      communicator.name = "MPI_COMM_WORLD";
    } else if (!rows.IsNull(4)) {
      communicator.name = fmt::format("MPI communicator {:#x}", static_cast<uint64_t>(rows.Int(4)));
    } else {
      communicator.name = fmt::format("MPI communicator {} of {} ranks", number, communicator.size.value_or(0));
    }
    // The row says the rank and not the process; reports of MPI ranks hold one, which its handles tell apart.
    communicators_.try_emplace({rows.MaybeInt(0).value_or(-1), rows.Int(1)}, std::move(communicator));
  });
}

void ReportEvents::FillGroup(int64_t process, std::optional<int64_t> handle, model::CollectiveRecord* record) {
  if (!handle) return;
  const auto rank = mpi_ranks_.find(process);
  const auto found = communicators_.find({rank == mpi_ranks_.end() ? -1 : int64_t{rank->second}, *handle});
  if (found == communicators_.end()) return;
  const Communicator& communicator = found->second;
  record->group_name = names_.Intern(communicator.name);
  record->group_size = communicator.size;
  if (communicator.members.starts_with('[')) record->group_ranks = Intern(communicator.members);
}

int64_t ReportEvents::EndOfRequest(int64_t process, std::optional<int64_t> handle, const Span& call) const {
  const int64_t end_ns = call.start_ns + call.duration_ns;
  if (!handle || *handle == 0) return end_ns;
  // Handles are used again: the first wait on it after the call is the call's.
  const Wait key{process, *handle, call.start_ns, INT64_MIN};
  const auto wait = std::lower_bound(waits_.begin(), waits_.end(), key);
  if (wait == waits_.end() || wait->process != process || wait->handle != *handle) return end_ns;
  return std::max(end_ns, wait->end_ns);
}

void ReportEvents::AddMpi(const Span& span, int64_t global_tid, NameId name) {
  Process(ProcessOf(global_tid))
      .Writer(Lane::kOperators, PidOf(global_tid), TidOf(global_tid))
      .Add(span.start_ns, span.duration_ns, name, model::Category::kUserAnnotation, 0);
}

void ReportEvents::ReadMpiCollectives() {
  constexpr const char* kTable = "MPI_COLLECTIVES_EVENTS";
  TableScan rows(database_, kTable,
                 {"start", "end", "globalTid", "textId", "commHandle", "size", "recvSize", "requestHandle"});
  ForEach(&rows, kTable, [&] {
    Span span;
    if (!ReadSpan(rows, &span)) return;
    const int64_t tid = rows.Int(2);
    const int64_t process = ProcessOf(tid);
    model::CollectiveRecord record;
    record.source = model::CollectiveRecord::Source::kAnnotation;
    record.event_name = MpiName(rows.Int(3));
    AddMpi(span, tid, record.event_name);
    if (!NamesCollective(strings_.Of(rows.Int(3)))) return;
    record.start_ns = span.start_ns;
    record.duration_ns = EndOfRequest(process, rows.MaybeInt(7), span) - span.start_ns;
    record.process_id = PidOf(tid);
    record.thread_id = TidOf(tid);
    record.in_elements = rows.MaybeInt(5);
    record.out_elements = rows.MaybeInt(6);
    if (record.in_elements || record.out_elements) record.dtype = names_.Intern("Byte");
    FillGroup(process, rows.MaybeInt(4), &record);
    Process(process).Collective(record);
  });
}

void ReportEvents::ReadMpiMessages() {
  constexpr const char* kTable = "MPI_P2P_EVENTS";
  TableScan rows(database_, kTable,
                 {"start", "end", "globalTid", "textId", "commHandle", "remoteRank", "size", "requestHandle"});
  ForEach(&rows, kTable, [&] {
    Span span;
    if (!ReadSpan(rows, &span)) return;
    const int64_t tid = rows.Int(2);
    const int64_t process = ProcessOf(tid);
    const std::string_view text = strings_.Of(rows.Int(3));
    model::CollectiveRecord record;
    record.source = model::CollectiveRecord::Source::kAnnotation;
    record.event_name = MpiName(rows.Int(3));
    // One MPI_Sendrecv makes two rows: the half that sends has no length.
    const bool is_pair = IsSendReceive(text);
    const bool sends = is_pair ? span.duration_ns == 0 : IsSend(text);
    if (!is_pair || !sends) AddMpi(span, tid, record.event_name);
    if (!sends && !is_pair && !IsReceive(text)) return;
    const auto peer = RankOf(rows.MaybeInt(5));
    record.collective_name = names_.Intern(sends ? "send" : "recv");
    (sends ? record.destination_rank : record.source_rank) = peer;
    record.start_ns = span.start_ns;
    record.duration_ns = EndOfRequest(process, rows.MaybeInt(7), span) - span.start_ns;
    record.process_id = PidOf(tid);
    record.thread_id = TidOf(tid);
    record.in_elements = rows.MaybeInt(6);
    if (record.in_elements) record.dtype = names_.Intern("Byte");
    FillGroup(process, rows.MaybeInt(4), &record);
    Process(process).Collective(record);
  });
}

void ReportEvents::ReadMpiCalls() {
  constexpr const char* kTable = "MPI_OTHER_EVENTS";
  TableScan rows(database_, kTable, {"start", "end", "globalTid", "textId"});
  ForEach(&rows, kTable, [&] {
    Span span;
    if (ReadSpan(rows, &span)) AddMpi(span, rows.Int(2), MpiName(rows.Int(3)));
  });
}

}  // namespace lockstep::ingest::nsight
