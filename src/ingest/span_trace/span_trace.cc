#include "ingest/span_trace/span_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "ingest/span_trace/chunk_reader.h"
#include "ingest/span_trace/tick_clock.h"
#include "ingest/torch_trace/track_writer.h"
#include "model/stages/stage.h"

namespace lockstep::ingest {
namespace {

using namespace span_trace;
using model::Severity;

std::string TextOf(const char* field, size_t bytes) { return ValidUtf8({field, strnlen(field, bytes)}); }

double DoubleOf(uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Records to columns.
class Builder {
 public:
  explicit Builder(RawFile* file) : file_(*file), clock_(std::move(file->anchors)) {
    content_.trace.rank = {file_.header.rank};
    content_.has_rank = file_.header.rank >= 0;
    if (file_.header.world_size > 0) content_.trace.world_size = file_.header.world_size;
    content_.trace.host = TextOf(file_.header.host, sizeof(file_.header.host));
    content_.trace.base_time_known = true;
    content_.is_span_trace = true;
    process_id_ = static_cast<int64_t>(file_.header.process_id & INT64_MAX);
  }

  TraceContent Build() {
    FindEnds();
    FindChunksOfLostEnds();
    for (auto& [number, chunk] : file_.chunks) {
      AddChunk(number, chunk);
      chunk.slots = {};
    }
    FinishTracks();
    FinishRequests();
    FinishCounters();
    auto& linked = content_.trace.linked_spans;
    std::stable_sort(linked.begin(), linked.end(),
                     [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    content_.trace.json_bytes = file_.bytes;
    return std::move(content_);
  }

  const TickClock& clock() const { return clock_; }
  uint64_t open_count() const { return open_count_; }
  uint64_t lost_end_count() const { return lost_end_count_; }
  uint64_t record_count() const { return content_.trace.event_count; }

 private:
  struct Request {
    bool has_begin = false;
    int64_t start_ns = 0;
    NameId name;
    model::TraceContext context;
    std::optional<int64_t> first_output_ns;
    std::optional<int64_t> end_ns;
    int64_t output_count = 0;
    bool failed = false;
    bool may_have_ended = false;  ///< Its end is not here, and may have been overwritten.
  };

  /// Ends that stand apart from their spans, and the last instant of the recording.
  void FindEnds() {
    last_tick_ = clock_.last_tick();
    for (const auto& [number, chunk] : file_.chunks) {
      for (size_t i = 0; i < chunk.slots.size(); i += kSlotCounts[chunk.slots[i].kind()]) {
        const Slot& slot = chunk.slots[i];
        if (slot.kind() == kEnd) end_ticks_.try_emplace(chunk.slots[i + 1].tick, slot.tick);
        if (slot.kind() == kLink) continue;
        uint64_t last = slot.tick;
        const bool has_duration = slot.kind() == kSpan || slot.kind() == kStep;
        if (has_duration && slot.payload() < kLong) last += slot.payload();
        // A damaged tick must not become the end of everything: none is a day beyond what clocks were read at.
        if (last < last_tick_ + kMostTicksAfterAnchor) latest_ = std::max(latest_, last);
      }
    }
    last_tick_ = std::max(last_tick_, latest_);
  }

  // Where the newest are kept, copies are overwritten in order, so that a span's begin goes before its end. Chunks that
  // were never copied stay while ends of their spans, in later chunks of the thread, go.
  void FindChunksOfLostEnds() {
    if (file_.header.overwritten_chunks == 0) return;
    std::vector<uint64_t> numbers = file_.name_chunk_numbers;
    std::unordered_map<uint32_t, uint64_t> last_of_thread;
    for (const auto& [number, chunk] : file_.chunks) {
      numbers.push_back(number);
      last_of_thread[chunk.thread_number] = number;
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    const auto place_of = [&](uint64_t number) {
      return static_cast<uint64_t>(std::lower_bound(numbers.begin(), numbers.end(), number) - numbers.begin());
    };
    for (const auto& [number, chunk] : file_.chunks) {
      const uint64_t last = last_of_thread[chunk.thread_number];
      const bool has_gap = place_of(last) - place_of(number) < last - number;
      if (!chunk.is_copy && has_gap) chunks_of_lost_ends_.insert(number);
    }
  }

  int64_t EndOf(uint64_t number, size_t slot_idx, const Slot& slot, bool* is_open) {
    *is_open = false;
    if (slot.payload() < kLong) return clock_.ToWall(slot.tick + slot.payload());
    const auto end = end_ticks_.find(number << kSlotBits | slot_idx);
    if (end != end_ticks_.end() && end->second >= slot.tick) return clock_.ToWall(end->second);
    *is_open = true;
    return clock_.ToWall(std::max(last_tick_, slot.tick));
  }

  NameId NameOf(uint32_t number) {
    const auto known = name_ids_.find(number);
    if (known != name_ids_.end()) return known->second;
    const auto text = file_.names.find(number);
    const NameId id = content_.names.Intern(text == file_.names.end() ? "(name lost)" : text->second);
    name_ids_.emplace(number, id);
    return id;
  }

  void AddChunk(uint64_t number, const RecordChunk& chunk) {
    auto& place = writers_[chunk.thread_id];
    if (place.writer == nullptr) {
      place.thread_id = static_cast<int64_t>(chunk.thread_id & INT64_MAX);
      place.writer = std::make_unique<TrackWriter>(model::Lane::kOperators, process_id_, place.thread_id);
    }
    if (!chunk.thread_name.empty()) place.thread_name = content_.names.Intern(chunk.thread_name);
    uint32_t count = 0;
    for (size_t i = 0; i < chunk.slots.size(); i += count) {
      const Slot& slot = chunk.slots[i];
      count = kSlotCounts[slot.kind()];
      const Slot* const second = count > 1 ? &chunk.slots[i + 1] : nullptr;
      switch (slot.kind()) {
        case kSpan:
        case kStep: AddSpan(number, i, chunk, &place); break;
        case kMark: AddEvent(&place, clock_.ToWall(slot.tick), 0, NameOf(slot.name())); break;
        case kCounterInteger:
          counters_[slot.name()].emplace_back(clock_.ToWall(slot.tick), static_cast<double>(slot.payload()));
          break;
        case kCounter: {
          const double value = DoubleOf(second->tick);
          if (std::isfinite(value)) counters_[slot.name()].emplace_back(clock_.ToWall(slot.tick), value);
          break;
        }
        case kRequestBegin: {
          Request& request = requests_[second->tick];
          request.has_begin = true;
          request.start_ns = clock_.ToWall(slot.tick);
          request.name = NameOf(slot.name());
          request.may_have_ended = chunks_of_lost_ends_.contains(number);
          if (const auto context = LinkAt(chunk, i + count)) request.context = *context;
          break;
        }
        case kRequestOutput: {
          Request& request = requests_[second->tick];
          const int64_t time_ns = clock_.ToWall(slot.tick);
          request.first_output_ns = std::min(request.first_output_ns.value_or(INT64_MAX), time_ns);
          const auto more = static_cast<int64_t>(std::min<uint64_t>(second->word, INT32_MAX));
          request.output_count = std::min(request.output_count, INT64_MAX - more) + more;
          break;
        }
        case kRequestEnd: {
          Request& request = requests_[second->tick];
          request.end_ns = clock_.ToWall(slot.tick);
          request.failed = slot.payload() != 0;
          break;
        }
        default: continue;  // Read elsewhere.
      }
      ++content_.trace.event_count;
    }
  }

  struct Place {
    std::unique_ptr<TrackWriter> writer;
    int64_t thread_id = 0;
    NameId thread_name;
  };

  void AddEvent(Place* place, int64_t start_ns, int64_t duration_ns, NameId name) {
    place->writer->Add(start_ns, duration_ns, name, model::Category::kUserAnnotation, 0);
  }

  void AddSpan(uint64_t number, size_t i, const RecordChunk& chunk, Place* place) {
    const Slot& slot = chunk.slots[i];
    bool is_open = false;
    const int64_t start_ns = clock_.ToWall(slot.tick);
    const int64_t duration_ns = std::max<int64_t>(EndOf(number, i, slot, &is_open) - start_ns, 0);
    if (is_open && chunks_of_lost_ends_.contains(number)) {
      ++lost_end_count_;
      return;
    }
    NameId name;
    if (slot.kind() == kStep) {
      // An unfinished step does not count as a step, but shows where the process was.
      const auto step = static_cast<int64_t>(chunk.slots[i + 1].tick);
      name = content_.names.Intern(is_open ? fmt::format("step {} (unfinished)", step)
                                           : fmt::format("ProfilerStep#{}", step));
    } else {
      name = NameOf(slot.name());
    }
    open_count_ += is_open ? 1 : 0;
    AddEvent(place, start_ns, duration_ns, name);
    if (const auto context = LinkAt(chunk, i + kSlotCounts[slot.kind()])) {
      content_.trace.linked_spans.push_back({start_ns, duration_ns, process_id_, place->thread_id, name, *context});
    }
  }

  static std::optional<model::TraceContext> LinkAt(const RecordChunk& chunk, size_t i) {
    if (i >= chunk.slots.size() || chunk.slots[i].kind() != kLink) return std::nullopt;
    return model::TraceContext{chunk.slots[i + 1].tick, chunk.slots[i + 1].word, chunk.slots[i].tick,
                               chunk.slots[i + 2].tick};
  }

  void Extend(int64_t start_ns, int64_t end_ns) {
    content_.trace.first_ns = std::min(content_.trace.first_ns.value_or(INT64_MAX), start_ns);
    content_.trace.last_ns = std::max(content_.trace.last_ns.value_or(INT64_MIN), end_ns);
  }

  void FinishTracks() {
    for (auto& [thread_id, place] : writers_) {
      if (place.writer->size() == 0) continue;
      model::Track track = place.writer->Finish(0);
      place.writer.reset();
      track.thread_name = place.thread_name;
      for (size_t i = 0; i < track.events.size(); ++i) Extend(track.events.start_ns[i], track.events.end_ns(i));
      content_.trace.complete_event_count += track.events.size();
      content_.trace.tracks.push_back(std::move(track));
    }
    std::sort(content_.trace.tracks.begin(), content_.trace.tracks.end(),
              [](const model::Track& a, const model::Track& b) { return a.thread_id < b.thread_id; });
  }

  void FinishRequests() {
    const int64_t last_ns = clock_.ToWall(last_tick_);
    for (const auto& [number, request] : requests_) {
      if (!request.has_begin) continue;
      if (request.may_have_ended && !request.end_ns) {
        ++lost_end_count_;
        continue;
      }
      model::RequestRecord record;
      record.start_ns = request.start_ns;
      record.unfinished = !request.end_ns;
      record.duration_ns = std::max<int64_t>(request.end_ns.value_or(last_ns) - request.start_ns, 0);
      if (request.first_output_ns) record.first_output_ns = std::max(*request.first_output_ns, request.start_ns);
      record.output_count = request.output_count;
      record.failed = request.failed;
      record.name = request.name;
      record.context = request.context;
      Extend(record.start_ns, record.start_ns + record.duration_ns);
      content_.trace.requests.push_back(record);
    }
    std::stable_sort(content_.trace.requests.begin(), content_.trace.requests.end(),
                     [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  }

  void FinishCounters() {
    for (auto& [number, points] : counters_) {
      if (model::IsDeviceTime(content_.names[NameOf(number)])) continue;
      std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      model::CounterSeries series;
      series.name = content_.names[NameOf(number)];
      for (const auto& [time_ns, value] : points) {
        Extend(time_ns, time_ns);
        series.time_ns.push_back(time_ns);
        series.value.push_back(value);
      }
      content_.trace.counters.push_back(std::move(series));
    }
    std::sort(content_.trace.counters.begin(), content_.trace.counters.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
  }

  static constexpr uint64_t kMostTicksAfterAnchor = uint64_t{86'400} * 5'000'000'000;

  RawFile& file_;
  const TickClock clock_;
  TraceContent content_;
  int64_t process_id_ = 0;
  uint64_t last_tick_ = 0;
  uint64_t latest_ = 0;
  uint64_t open_count_ = 0;
  uint64_t lost_end_count_ = 0;
  std::unordered_set<uint64_t> chunks_of_lost_ends_;
  std::unordered_map<uint64_t, uint64_t> end_ticks_;  ///< By place.
  std::unordered_map<uint32_t, NameId> name_ids_;
  std::map<uint64_t, Place> writers_;
  std::map<uint32_t, std::vector<std::pair<int64_t, double>>> counters_;
  std::map<uint64_t, Request> requests_;
};

void AddRow(model::Ledger* ledger, const char* code, Severity severity, const std::string& source, uint64_t count,
            std::string message, std::string advice) {
  model::LedgerEntry entry;
  entry.code = code;
  entry.severity = severity;
  entry.source = source;
  entry.count = count;
  entry.message = std::move(message);
  entry.advice = std::move(advice);
  ledger->Add(std::move(entry));
}

void ReportQuality(const RawFile& file, const Builder& builder, const std::string& source, model::Ledger* ledger) {
  const Header& header = file.header;
  if (header.dropped_records > 0) {
    AddRow(ledger, "dropped_spans", Severity::kWarning, source, header.dropped_records,
           fmt::format("{} records are missing: the file reached its limit of {} MiB, or its disk was full",
                       header.dropped_records, header.limit_bytes >> 20),
           "raise LOCKSTEP_TRACE_LIMIT_MIB, or record less");
  }
  if (header.overwritten_chunks > 0) {
    AddRow(ledger, "overwritten_spans", Severity::kInfo, source, header.overwritten_chunks,
           fmt::format(
               "{} pieces of up to 4,090 records were overwritten by newer ones, because LOCKSTEP_TRACE_RING is set",
               header.overwritten_chunks),
           "raise LOCKSTEP_TRACE_LIMIT_MIB to keep more");
  }
  if (header.dropped_names > 0) {
    AddRow(ledger, "dropped_names", Severity::kWarning, source, header.dropped_names,
           fmt::format("{} names of spans could not be kept: there are too many, or no room was left",
                       header.dropped_names),
           "put what changes with each call into a counter, not into a span's name");
  }
  if (header.end.tick == 0) {
    AddRow(ledger, "recording_not_ended", Severity::kInfo, source, 1,
           "the process was killed, called exec or still runs: its spans end where the recording does", "");
  }
  if (builder.open_count() > 0) {
    AddRow(ledger, "unfinished_spans", Severity::kInfo, source, builder.open_count(),
           fmt::format("{} spans had not ended when the recording did; they are taken to last until then",
                       builder.open_count()),
           "");
  }
  if (builder.lost_end_count() > 0) {
    AddRow(ledger, "lost_ends", Severity::kInfo, source, builder.lost_end_count(),
           fmt::format("{} spans and requests are left out: the records of their end may have been overwritten",
                       builder.lost_end_count()),
           "raise LOCKSTEP_TRACE_LIMIT_MIB to keep more");
  }
  if (builder.clock().step_count() > 0) {
    AddRow(ledger, "wall_clock_set", Severity::kWarning, source, builder.clock().step_count(),
           "the host's wall clock was set while spans were recorded; times before and after it do not compare", "");
  }
  if (file.damaged_pages > 0 || file.is_cut) {
    model::LedgerEntry entry;
    entry.code = file.damaged_pages > 0 ? "damaged_chunks" : "truncated_file";
    entry.severity = Severity::kWarning;
    entry.source = source;
    entry.byte_offset = file.damaged_pages > 0 ? file.first_damage : file.bytes;
    entry.count = std::max<uint64_t>(file.damaged_pages, 1);
    entry.message = file.damaged_pages > 0 ? fmt::format("{} pages are damaged and were skipped", file.damaged_pages)
                                           : "ends inside a chunk; what is before it was read";
    entry.advice = "copy the file again";
    ledger->Add(std::move(entry));
  }
}

}  // namespace

bool StartsSpanTrace(std::string_view head) { return head.starts_with(kMagic); }

Result<TraceContent> ReadSpanTrace(ByteSource& source, const std::string& display_name,
                                   const TraceReaderOptions& options) {
  ASSIGN_OR_RETURN(RawFile file, ReadChunks(source, display_name, options));
  Builder builder(&file);
  TraceContent content = builder.Build();
  content.trace.source = display_name;
  ReportQuality(file, builder, display_name, &content.ledger);
  return content;
}

}  // namespace lockstep::ingest
