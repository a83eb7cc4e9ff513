#include "export/timeline/links.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace lockstep::timeline {
namespace {

using model::Lane;
using model::LinkedSpan;
using model::RankTrace;
using model::RequestRecord;
using model::TraceContext;

/// A span or request that is written.
struct Written {
  size_t rank_index = 0;
  std::optional<RowRef> row = {};  ///< Absent: it is a request.
  uint32_t request_idx = 0;
  int64_t start_ns = 0;  ///< Aligned clock.
  int64_t end_ns = 0;
  TraceContext context;

  std::array<uint64_t, 3> id() const { return {context.trace_high, context.trace_low, context.span_id}; }
  std::array<uint64_t, 3> parent() const { return {context.trace_high, context.trace_low, context.parent_id}; }
};

/// Tracks of a rank by process and thread, so that a span's row is found without walking all of them.
class RowFinder {
 public:
  explicit RowFinder(const RankTrace& trace) : trace_(trace) {
    for (uint32_t t = 0; t < trace.tracks.size(); ++t) {
      const model::Track& track = trace.tracks[t];
      if (track.lane == Lane::kOperators) tracks_[{track.process_id, track.thread_id}].push_back(t);
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

std::vector<Written> WrittenOf(const model::Run& run, const RunSelection& selection, Links* links) {
  std::vector<Written> all;
  for (size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const RankTrace& trace = run.ranks[rank];
    if (!selection.rank(rank).selected || (trace.linked_spans.empty() && trace.requests.empty())) continue;
    const auto add = [&](int64_t start_ns, int64_t duration_ns, Written written) {
      written.rank_index = rank;
      written.start_ns = trace.clock.ToRun(start_ns);
      written.end_ns = trace.clock.ToRun(start_ns + duration_ns);
      all.push_back(written);
    };
    const RowFinder rows(trace);
    for (uint32_t i = 0; i < trace.linked_spans.size(); ++i) {
      const LinkedSpan& span = trace.linked_spans[i];
      if (!span.context.known() || !selection.Contains(rank, Lane::kOperators, span.start_ns)) continue;
      const auto row = rows.Find(span);
      if (!row) continue;
      links->ranks[rank].contexts.emplace_back(*row, i);
      add(span.start_ns, span.duration_ns, {.row = row, .context = span.context});
    }
    for (uint32_t i = 0; i < trace.requests.size(); ++i) {
      const RequestRecord& request = trace.requests[i];
      if (!request.context.known() || !selection.Contains(rank, Lane::kOperators, request.start_ns)) continue;
      add(request.start_ns, request.duration_ns, {.request_idx = i, .context = request.context});
    }
  }
  return all;
}

/// Whether the picture shows it without an arrow.
bool LiesInside(const Written& caller, const Written& called) {
  return caller.rank_index == called.rank_index && caller.row && called.row && caller.row->track == called.row->track &&
         caller.start_ns <= called.start_ns && called.end_ns <= caller.end_ns;
}

}  // namespace

Links FindLinks(const model::Run& run, const RunSelection& selection, uint64_t* next_id) {
  Links links;
  links.ranks.resize(run.ranks.size());
  const std::vector<Written> all = WrittenOf(run, selection, &links);
  for (RankLinks& rank : links.ranks) std::sort(rank.contexts.begin(), rank.contexts.end());
  if (!selection.flows()) return links;

  std::vector<const Written*> by_id;
  for (const Written& written : all) {
    if (written.context.span_id != 0) by_id.push_back(&written);
  }
  std::stable_sort(by_id.begin(), by_id.end(), [](const Written* a, const Written* b) { return a->id() < b->id(); });
  const auto add = [&](const Written& written, const Flow& flow) {
    RankLinks& rank = links.ranks[written.rank_index];
    if (written.row) {
      rank.spans.push_back({*written.row, flow});
    } else {
      rank.requests.push_back({written.request_idx, flow});
    }
  };
  for (const Written& called : all) {
    if (called.context.parent_id == 0) continue;
    const auto found =
        std::lower_bound(by_id.begin(), by_id.end(), called.parent(),
                         [](const Written* written, const std::array<uint64_t, 3>& id) { return written->id() < id; });
    if (found == by_id.end() || (*found)->id() != called.parent() || *found == &called) continue;
    const Written& caller = **found;
    if (LiesInside(caller, called)) continue;
    if (called.start_ns < caller.start_ns) {
      ++links.backward_count;
      continue;
    }
    const uint64_t id = (*next_id)++;
    add(caller, {id, FlowEnd::kStart, "link"});
    add(called, {id, FlowEnd::kEnd, "link"});
    ++links.flow_count;
  }
  for (RankLinks& rank : links.ranks) {
    std::stable_sort(rank.spans.begin(), rank.spans.end(),
                     [](const RowFlow& a, const RowFlow& b) { return a.at < b.at; });
    std::stable_sort(rank.requests.begin(), rank.requests.end(),
                     [](const RequestFlow& a, const RequestFlow& b) { return a.request_idx < b.request_idx; });
  }
  return links;
}

}  // namespace lockstep::timeline
