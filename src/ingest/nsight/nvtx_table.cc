#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/base64.h"
#include "base/text_scan.h"
#include "ingest/nsight/event_names.h"
#include "ingest/nsight/nccl_payload.h"
#include "ingest/nsight/report_events.h"

namespace lockstep::ingest::nsight {
namespace {

enum NvtxType : int64_t {
  kMark = 34,
  kThreadName = 39,
  kPushPop = 59,
  kStartEnd = 60,
  kNvtxtPushPop = 70,
  kNvtxtStartEnd = 71,
  kDomainCreate = 75,
};

std::optional<int32_t> Small(std::optional<int64_t> value) {
  if (!value || *value < 0 || *value > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(*value);
}

}  // namespace

void ReportEvents::ReadRanges() {
  constexpr const char* kTable = "NVTX_EVENTS";
  TableScan rows(database_, kTable,
                 {"start", "end", "eventType", "text", "textId", "globalTid", "domainId", "jsonText", "jsonTextId",
                  kPayloadBase64Column});
  // Ranges of a domain whose name has not come yet; without one they are as if it had none.
  std::vector<PendingRange> pending;
  ForEach(&rows, kTable, [&] {
    const int64_t type = rows.Int(2);
    const int64_t tid = rows.Int(5);
    const int64_t domain = rows.Int(6);
    const auto text = [&] { return rows.IsNull(3) ? strings_.Of(rows.Int(4)) : rows.Text(3); };
    if (type == kDomainCreate) {
      began_midway_ = began_midway_ || (!rows.IsNull(0) && rows.Int(0) < 0);
      domains_.try_emplace({ProcessOf(tid), domain}, text());
      return;
    }
    if (type == kThreadName) {
      const std::string_view name = text();
      thread_names_.insert_or_assign(PidOf(tid) << 24 | TidOf(tid), Intern(name));
      constexpr std::string_view kMpiRank = "MPI Rank ";
      TextCursor words(name);
      const auto rank = words.Skip(kMpiRank) ? words.Number<int32_t>() : std::nullopt;
      if (rank) mpi_ranks_.try_emplace(ProcessOf(tid), *rank);
      return;
    }
    if (type == kMark) {
      Span span;
      if (!ReadSpan(rows, &span)) return;
      const std::string name = RegionOf({}, text()).name;
      Process(ProcessOf(tid))
          .Writer(model::Lane::kOther, PidOf(tid), TidOf(tid))
          .Add(span.start_ns, 0, Intern(name), model::Category::kOther, 0);
      return;
    }
    if (type != kPushPop && type != kStartEnd && type != kNvtxtPushPop && type != kNvtxtStartEnd) return;
    Range range;
    if (!ReadSpan(rows, &range.span)) return;
    range.global_tid = tid;
    const bool is_open = rows.IsNull(1);
    if (is_open) {
      notes_->CountRow(kUnfinished);
      range.span.duration_ns = -1;
    }
    if (rows.IsNull(3)) {
      range.string = strings_.IndexOf(rows.Int(4));
      if (range.string != StringTable::kNone) range.text = strings_.At(range.string);
    } else {
      range.text = rows.Text(3);
    }
    if (!rows.IsNull(7)) {
      range.payload = rows.Text(7);
    } else if (!rows.IsNull(8)) {
      range.payload = strings_.Of(rows.Int(8));
    }
    if (!rows.IsNull(9)) range.payload_base64 = rows.Text(9);
    std::string_view domain_name;
    bool is_clear = domain == 0 || SaysItsDomain(range.text);
    if (!is_clear) {
      const auto known = domains_.find({ProcessOf(tid), domain});
      is_clear = known != domains_.end();
      if (is_clear) domain_name = known->second;
    }
    if (is_clear && !is_open) {
      AddRange(range, domain_name);
    } else {
      pending.push_back(
          {range, domain, std::string(range.text), std::string(range.payload), std::string(range.payload_base64)});
    }
  });
  for (PendingRange& late : pending) {
    Range& range = late.range;
    range.text = late.text;
    range.payload = late.payload;
    range.payload_base64 = late.payload_base64;
    if (range.span.duration_ns < 0) {
      range.span.duration_ns = std::max<int64_t>(last_end_ns_ - range.span.start_ns, 0);
    }
    const auto known = domains_.find({ProcessOf(range.global_tid), late.domain});
    AddRange(range, known == domains_.end() || late.domain == 0 ? std::string_view() : std::string_view(known->second));
  }
  if (unknown_payload_count_ > 0) {
    notes_->Add("nsys_payload_unknown", model::Severity::kInfo,
                "payloads of ranges are there as bytes whose layout the export does not say, and that are none of "
                "NCCL's: what is in them was not read",
                "export with nsys 2025 or newer: nsys export -t sqlite --include-json true", unknown_payload_count_);
  }
}

NcclPayload ReportEvents::PayloadOf(const Range& range) {
  if (range.payload_base64.empty()) return ReadNcclPayload(range.payload);
  const std::optional<std::string> bytes = DecodeBase64(range.payload_base64);
  const auto payload = bytes ? DecodeNcclPayload(range.text, *bytes) : std::nullopt;
  if (!payload) ++unknown_payload_count_;
  return payload.value_or(NcclPayload());
}

ReportEvents::KnownRegion ReportEvents::RegionOfRange(const Range& range, std::string_view domain) {
  const auto look = [&] {
    const Region region = RegionOf(domain, range.text);
    return KnownRegion{Intern(region.name), region.category, region.is_collective, true};
  };
  if (range.string == StringTable::kNone || !domain.empty()) return look();
  if (regions_.empty()) regions_.resize(strings_.size());
  KnownRegion& known = regions_[range.string];
  if (!known.is_known) known = look();
  return known;
}

void ReportEvents::AddRange(const Range& range, std::string_view domain) {
  const KnownRegion region = RegionOfRange(range, domain);
  const int64_t pid = PidOf(range.global_tid);
  const int64_t tid = TidOf(range.global_tid);
  ProcessEvents& process = Process(ProcessOf(range.global_tid));
  process.Writer(model::Lane::kOperators, pid, tid)
      .Add(range.span.start_ns, range.span.duration_ns, region.name, region.category, 0);
  if (range.payload.empty() && range.payload_base64.empty() && !region.is_collective) return;
  const NcclPayload payload = PayloadOf(range);
  if (payload.rank && payload.rank_count && range.text.starts_with("ncclCommInit") && !mpi_world_) {
    // The largest communicator is taken for the job's.
    const auto rank = Small(payload.rank);
    const auto world = Small(payload.rank_count);
    if (rank && world && *rank < *world) nccl_ranks_.emplace(ProcessOf(range.global_tid), std::pair(*world, *rank));
  }
  if (!region.is_collective) return;
  model::CollectiveRecord record;
  record.source = model::CollectiveRecord::Source::kAnnotation;
  record.start_ns = range.span.start_ns;
  record.duration_ns = range.span.duration_ns;
  record.process_id = pid;
  record.thread_id = tid;
  record.event_name = region.name;
  record.communicator_id = payload.communicator;
  if (payload.message_bytes) {
    record.in_elements = payload.message_bytes;
    record.dtype = names_.Intern("Byte");
  }
  if (const auto peer = Small(payload.peer)) {
    (range.text == "ncclSend" ? record.destination_rank : record.source_rank) = *peer;
  }
  process.Collective(record);
}

}  // namespace lockstep::ingest::nsight
