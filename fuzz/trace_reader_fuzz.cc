// The reader of PyTorch traces. The first two bytes choose the size of the window and the limit for one event; the rest
// is the file. On a file without damage the fast path of learned templates and the general path must agree (behind the
// last value it needs, the fast path follows only strings and braces, and so takes some damaged events that the general
// path refuses); windows of different sizes must agree always.
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/torch_trace/trace_category.h"
#include "ingest/torch_trace/trace_reader.h"

namespace {

using namespace lockstep;
using namespace lockstep::ingest;

std::optional<TraceContent> Read(std::string_view bytes, const TraceReaderOptions& options) {
  auto source = OpenMemory(std::string(bytes), {.max_output_bytes = uint64_t{16} << 20, .max_ratio = 2000});
  if (!source) return std::nullopt;
  auto content = ReadTrace(**source, "fuzz.json", options);
  if (!content) return std::nullopt;
  return std::move(*content);
}

template <typename T>
bool SameColumn(const Column<T>& a, const Column<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

// Ids of two tables are compared by what they stand for.
class Names {
 public:
  Names(const TraceContent& a, const TraceContent& b) : a_(a.names), b_(b.names) {}
  bool Same(NameId a, NameId b) const {
    FUZZ_CHECK(a.value < a_.size() && b.value < b_.size());
    return a_[a] == b_[b];
  }
  bool Same(const Column<NameId>& a, const Column<NameId>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](NameId x, NameId y) { return Same(x, y); });
  }

 private:
  const model::NameTable& a_;
  const model::NameTable& b_;
};

void CheckTrack(const model::Track& track) {
  const model::EventColumns& events = track.events;
  const size_t count = events.size();
  FUZZ_CHECK(events.duration_ns.size() == count && events.name.size() == count && events.category.size() == count);
  FUZZ_CHECK(events.correlation.empty() || events.correlation.size() == count);
  for (size_t i = 0; i < count; ++i) {
    FUZZ_CHECK(events.duration_ns[i] >= 0);
    FUZZ_CHECK(static_cast<int>(events.category[i]) < model::kCategoryCount);
    FUZZ_CHECK(i == 0 || events.start_ns[i - 1] <= events.start_ns[i]);
  }
}

void CheckSameTrack(const model::Track& a, const model::Track& b, const Names& names) {
  FUZZ_CHECK(a.lane == b.lane && a.process_id == b.process_id && a.thread_id == b.thread_id);
  FUZZ_CHECK(names.Same(a.thread_name, b.thread_name));
  FUZZ_CHECK(SameColumn(a.events.start_ns, b.events.start_ns));
  FUZZ_CHECK(SameColumn(a.events.duration_ns, b.events.duration_ns));
  FUZZ_CHECK(names.Same(a.events.name, b.events.name));
  FUZZ_CHECK(SameColumn(a.events.category, b.events.category));
  FUZZ_CHECK(SameColumn(a.events.correlation, b.events.correlation));
}

void CheckSameCollective(const model::CollectiveRecord& a, const model::CollectiveRecord& b, const Names& names) {
  FUZZ_CHECK(a.source == b.source && a.start_ns == b.start_ns && a.duration_ns == b.duration_ns);
  FUZZ_CHECK(a.process_id == b.process_id && a.thread_id == b.thread_id && a.correlation == b.correlation);
  FUZZ_CHECK(names.Same(a.event_name, b.event_name) && names.Same(a.collective_name, b.collective_name));
  FUZZ_CHECK(names.Same(a.dtype, b.dtype) && names.Same(a.group_name, b.group_name));
  FUZZ_CHECK(names.Same(a.group_description, b.group_description) && names.Same(a.group_ranks, b.group_ranks));
  FUZZ_CHECK(a.in_elements == b.in_elements && a.out_elements == b.out_elements && a.group_size == b.group_size);
  FUZZ_CHECK(a.sequence == b.sequence && a.communicator_id == b.communicator_id);
  FUZZ_CHECK(a.source_rank == b.source_rank && a.destination_rank == b.destination_rank);
}

// The fast path looks for metadata only behind names that say so; the general path takes it wherever it is.
std::vector<const model::CollectiveRecord*> NamedCollectives(const TraceContent& content) {
  std::vector<const model::CollectiveRecord*> named;
  for (const model::CollectiveRecord& record : content.trace.collectives) {
    if (MayCarryCollectiveMetadata(content.names[record.event_name])) named.push_back(&record);
  }
  return named;
}

bool HasRow(const TraceContent& content, std::initializer_list<std::string_view> codes) {
  const auto& entries = content.ledger.entries();
  return std::any_of(entries.begin(), entries.end(), [&](const model::LedgerEntry& entry) {
    return std::find(codes.begin(), codes.end(), entry.code) != codes.end();
  });
}

// Whether the general path found the file's structure whole.
bool IsWhole(const TraceContent& content) {
  return !HasRow(content, {"truncated_file", "bad_event", "oversized_event", "unescaped_quote", "bad_metadata"});
}

void CheckSame(const TraceContent& a, const TraceContent& b) {
  const Names names(a, b);
  const model::RankTrace &x = a.trace, &y = b.trace;
  FUZZ_CHECK(a.has_rank == b.has_rank && x.rank == y.rank && x.world_size == y.world_size);
  FUZZ_CHECK(x.event_count == y.event_count && x.complete_event_count == y.complete_event_count);
  FUZZ_CHECK(x.first_ns == y.first_ns && x.last_ns == y.last_ns && x.base_time_known == y.base_time_known);
  FUZZ_CHECK(x.tracks.size() == y.tracks.size());
  for (size_t i = 0; i < x.tracks.size(); ++i) CheckSameTrack(x.tracks[i], y.tracks[i], names);
  const auto of_x = NamedCollectives(a), of_y = NamedCollectives(b);
  FUZZ_CHECK(of_x.size() == of_y.size());
  for (size_t i = 0; i < of_x.size(); ++i) CheckSameCollective(*of_x[i], *of_y[i], names);
  FUZZ_CHECK(SameColumn(x.memory.time_ns, y.memory.time_ns));
  FUZZ_CHECK(SameColumn(x.memory.change_bytes, y.memory.change_bytes));
  FUZZ_CHECK(SameColumn(x.memory.allocated_bytes, y.memory.allocated_bytes));
  FUZZ_CHECK(SameColumn(x.memory.reserved_bytes, y.memory.reserved_bytes));
  FUZZ_CHECK(SameColumn(x.memory.device, y.memory.device));
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  TraceReaderOptions general;
  general.learned_templates = false;
  general.window_bytes = size_t{16} << data[0] % 12;
  const bool small_events = data[1] % 4 == 0;
  if (small_events) general.max_event_bytes = size_t{64} << data[1] / 4 % 12;
  TraceReaderOptions learned = general;
  learned.learned_templates = true;

  const auto by_general_path = Read(bytes, general);
  const auto by_templates = Read(bytes, learned);
  FUZZ_CHECK(by_templates.has_value() == by_general_path.has_value());
  if (!by_templates) return 0;
  for (const model::Track& track : by_templates->trace.tracks) CheckTrack(track);
  for (const model::Track& track : by_general_path->trace.tracks) CheckTrack(track);
  const bool whole = IsWhole(*by_general_path);
  if (whole) CheckSame(*by_templates, *by_general_path);

  // What counts as oversized may depend on the window; everything else may not.
  if (small_events || HasRow(*by_general_path, {"damaged_stream"})) return 0;
  general.window_bytes = learned.window_bytes = size_t{1} << 20;
  const auto large_general = Read(bytes, general);
  FUZZ_CHECK(large_general.has_value());
  CheckSame(*large_general, *by_general_path);
  if (!whole) return 0;
  const auto large_learned = Read(bytes, learned);
  FUZZ_CHECK(large_learned.has_value());
  CheckSame(*large_learned, *by_general_path);
  return 0;
}
