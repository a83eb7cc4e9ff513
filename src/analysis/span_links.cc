#include "analysis/span_links.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace lockstep::analysis {
namespace {

using model::LinkedSpan;
using model::RankTrace;
using model::RowRef;
using PartId = std::array<uint64_t, 3>;

PartId IdOf(const SpanPart& part) { return {part.context.trace_high, part.context.trace_low, part.context.span_id}; }
PartId ParentOf(const SpanPart& part) {
  return {part.context.trace_high, part.context.trace_low, part.context.parent_id};
}

/// Tracks of a rank by process and thread, so that a span's row is found without walking all of them.
class RowFinder {
 public:
  explicit RowFinder(const RankTrace& trace) : trace_(trace) {
    for (uint32_t t = 0; t < trace.tracks.size(); ++t) {
      const model::Track& track = trace.tracks[t];
      if (track.lane == model::Lane::kOperators) tracks_[{track.process_id, track.thread_id}].push_back(t);
    }
  }

  std::optional<RowRef> Find(const LinkedSpan& span) const {
    const auto tracks = tracks_.find({span.process_id, span.thread_id});
    if (tracks == tracks_.end()) return std::nullopt;
    for (const uint32_t t : tracks->second) {
      const model::EventColumns& events = trace_.tracks[t].events;
      const auto* found = std::lower_bound(events.start_ns.begin(), events.start_ns.end(), span.start_ns);
      for (; found != events.start_ns.end() && *found == span.start_ns; ++found) {
        const auto row = static_cast<uint32_t>(found - events.start_ns.begin());
        if (events.duration_ns[row] == span.duration_ns && events.name[row] == span.name) return RowRef{t, row};
      }
    }
    return std::nullopt;
  }

 private:
  const RankTrace& trace_;
  std::map<std::pair<int64_t, int64_t>, std::vector<uint32_t>> tracks_;
};

std::vector<SpanPart> PartsOf(const model::Run& run, const std::function<bool(size_t, int64_t)>& takes) {
  std::vector<SpanPart> parts;
  for (size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const RankTrace& trace = run.ranks[rank];
    if (trace.linked_spans.empty() && trace.requests.empty()) continue;
    const auto add = [&](const auto& of, std::optional<RowRef> row, uint32_t index) {
      parts.push_back({rank, row, index, trace.clock.ToRun(of.start_ns),
                       trace.clock.ToRun(of.start_ns + of.duration_ns), of.context});
    };
    const RowFinder rows(trace);
    for (uint32_t i = 0; i < trace.linked_spans.size(); ++i) {
      const LinkedSpan& span = trace.linked_spans[i];
      if (!span.context.known() || !takes(rank, span.start_ns)) continue;
      if (const auto row = rows.Find(span)) add(span, row, i);
    }
    for (uint32_t i = 0; i < trace.requests.size(); ++i) {
      const model::RequestRecord& request = trace.requests[i];
      if (request.context.known() && takes(rank, request.start_ns)) add(request, std::nullopt, i);
    }
  }
  return parts;
}

/// Whether a picture shows it without an arrow.
bool LiesInside(const SpanPart& caller, const SpanPart& called) {
  return caller.rank_index == called.rank_index && caller.row && called.row && caller.row->track == called.row->track &&
         caller.start_ns <= called.start_ns && called.end_ns <= caller.end_ns;
}

}  // namespace

SpanLinks FindSpanLinks(const model::Run& run, const std::function<bool(size_t, int64_t)>& takes) {
  SpanLinks result;
  result.parts = PartsOf(run, takes);
  const std::vector<SpanPart>& parts = result.parts;
  std::vector<uint32_t> by_id;
  for (uint32_t i = 0; i < parts.size(); ++i) {
    if (parts[i].context.span_id != 0) by_id.push_back(i);
  }
  std::stable_sort(by_id.begin(), by_id.end(), [&](uint32_t a, uint32_t b) { return IdOf(parts[a]) < IdOf(parts[b]); });
  for (uint32_t called = 0; called < parts.size(); ++called) {
    if (parts[called].context.parent_id == 0) continue;
    const PartId parent = ParentOf(parts[called]);
    const auto caller = std::lower_bound(by_id.begin(), by_id.end(), parent,
                                         [&](uint32_t part, const PartId& id) { return IdOf(parts[part]) < id; });
    if (caller == by_id.end() || IdOf(parts[*caller]) != parent || *caller == called) continue;
    if (LiesInside(parts[*caller], parts[called])) continue;
    if (parts[called].start_ns < parts[*caller].start_ns) {
      ++result.backward_count;
    } else {
      result.links.push_back({*caller, called});
    }
  }
  return result;
}

}  // namespace lockstep::analysis
