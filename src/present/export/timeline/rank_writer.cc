#include "present/export/timeline/rank_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "analysis/critical_path/critical_path.h"

namespace lockstep::timeline {
namespace {

using model::CollectiveRecord;
using model::Lane;

constexpr uint64_t kReportedEvents = 50'000;

/// The lane that a record's event lies on.
Lane LaneOf(CollectiveRecord::Source source) {
  return source == CollectiveRecord::Source::kKernel ? Lane::kDevice : Lane::kOperators;
}

/// Finds the record of an event: records are sorted by start. Events that are alike take theirs in order.
class RecordFinder {
 public:
  explicit RecordFinder(const model::RankTrace& trace)
      : records_(trace.collectives), taken_(trace.collectives.size(), false) {}

  const CollectiveRecord* Find(const model::Track& track, size_t row) {
    const int64_t start_ns = track.events.start_ns[row];
    auto at = std::lower_bound(records_.begin(), records_.end(), start_ns,
                               [](const CollectiveRecord& record, int64_t time) { return record.start_ns < time; });
    for (; at != records_.end() && at->start_ns == start_ns; ++at) {
      const auto idx = static_cast<size_t>(at - records_.begin());
      if (taken_[idx] || LaneOf(at->source) != track.lane || at->event_name != track.events.name[row] ||
          at->duration_ns != track.events.duration_ns[row] || at->process_id != track.process_id ||
          at->thread_id != track.thread_id)
        continue;
      taken_[idx] = true;
      return &*at;
    }
    return nullptr;
  }

 private:
  const std::vector<CollectiveRecord>& records_;
  std::vector<bool> taken_;
};

/// A trace context as args, in the form of W3C's traceparent. Lives as long as the slice is handed over.
class ContextTexts {
 public:
  explicit ContextTexts(const model::TraceContext& context) {
    if (!context.known()) return;
    trace_ = fmt::format("{:016x}{:016x}", context.trace_high, context.trace_low);
    span_ = fmt::format("{:016x}", context.span_id);
  }
  void AddTo(Slice* slice) const {
    if (trace_.empty()) return;
    slice->texts.emplace_back("trace id", trace_);
    slice->texts.emplace_back("span id", span_);
  }

 private:
  std::string trace_, span_;
};

}  // namespace

TimelineContent::TimelineContent(const model::Run& run, const analysis::Collectives& collectives,
                                 const Options& options, RunSelection selection)
    : run_(&run),
      collectives_(&collectives),
      options_(&options),
      selection_(std::move(selection)),
      ids_(std::make_unique<TrackIds>(run)) {}

Result<TimelineContent> TimelineContent::Create(const model::Run& run, const analysis::Collectives& collectives,
                                                const Options& options) {
  ASSIGN_OR_RETURN(RunSelection selection, RunSelection::Resolve(run, options));
  TimelineContent content(run, collectives, options, std::move(selection));
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    const model::RankTrace& trace = run.ranks[i];
    const RankSelection& rank = content.selection_.rank(i);
    if (!rank.selected) continue;
    content.rank_indices_.push_back(i);
    const auto take = [&](int64_t trace_ns) { first_ns = std::min(first_ns, trace.clock.ToRun(trace_ns)); };
    for (const model::Track& track : trace.tracks) {
      content.total_event_count_ += track.events.size();
      for (const int64_t start_ns : track.events.start_ns) {
        if (!content.selection_.Contains(i, track.lane, start_ns)) continue;
        take(start_ns);
        break;  // Sorted: the first one is the earliest.
      }
    }
    for (const int64_t time_ns : trace.memory.time_ns) {
      if (!content.selection_.Contains(i, Lane::kOperators, time_ns)) continue;
      take(time_ns);
      break;
    }
    for (const model::CounterSeries& series : trace.counters) {
      for (const int64_t time_ns : series.time_ns) {
        if (!content.selection_.Contains(i, Lane::kOperators, time_ns)) continue;
        take(time_ns);
        break;
      }
    }
    for (const model::RequestRecord& request : trace.requests) {
      if (!content.selection_.Contains(i, Lane::kOperators, request.start_ns)) continue;
      take(request.start_ns);
      break;
    }
    if (options.logs != nullptr) {
      for (const LogPoint& line : (*options.logs)[i]) {
        if (!content.selection_.ContainsTime(i, line.time_ns)) continue;
        take(line.time_ns);
        break;
      }
    }
    if (!rank.steps.empty()) take(rank.steps.front().start_ns);
  }
  if (first_ns == std::numeric_limits<int64_t>::max()) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = "nothing is left to write: no event of these ranks is in the stretch of time asked for"};
  }
  std::sort(content.rank_indices_.begin(), content.rank_indices_.end(), [&](size_t a, size_t b) {
    return std::pair(run.ranks[a].rank, run.ranks[a].window) < std::pair(run.ranks[b].rank, run.ranks[b].window);
  });
  content.shift_ns_ = first_ns < 0 ? -first_ns : 0;
  content.first_ns_ = first_ns + content.shift_ns_;
  content.collective_rows_ =
      FindCollectiveRows(run, collectives, content.selection_, &content.next_flow_id_, &content.collective_flow_count_);
  content.links_ = FindLinks(run, content.selection_, &content.next_flow_id_);
  return content;
}

Summary TimelineContent::EmptySummary() const {
  Summary summary;
  std::set<int32_t> ranks;
  for (const size_t i : rank_indices_) ranks.insert(run_->ranks[i].rank.value);
  summary.ranks.assign(ranks.begin(), ranks.end());
  summary.collective_flow_count = collective_flow_count_;
  summary.link_flow_count = links_.flow_count;
  summary.backward_link_count = links_.backward_count;
  return summary;
}

void TimelineContent::Begin(EventWriter* writer) const {
  const bool wall_clock = shift_ns_ == 0 && run_->ranks.front().base_time_known;
  writer->Begin(RunFacts(rank_indices_.size(), options_->version, shift_ns_), first_ns_, wall_clock);
}

void TimelineContent::Count(int64_t start_ns, int64_t end_ns, Summary* summary) const {
  summary->first_ns = std::min(summary->first_ns.value_or(INT64_MAX), start_ns - shift_ns_);
  summary->last_ns = std::max(summary->last_ns.value_or(INT64_MIN), end_ns - shift_ns_);
}

void TimelineContent::WriteRank(size_t rank_index, EventWriter* writer, Summary* summary) const {
  const model::RankTrace& trace = run_->ranks[rank_index];
  RankPlan plan = PlanRank(*run_, rank_index, selection_, ids_.get());
  if (options_->critical_path != nullptr)  // Above the steps.
    plan.critical_path_track = {plan.process.process_id, ids_->next_thread_id(), -1, "critical path"};
  if (options_->logs != nullptr && !(*options_->logs)[rank_index].empty())  // Above all.
    plan.log_track = {plan.process.process_id, ids_->next_thread_id(), -2, "log"};
  const std::vector<RowFlow> launches = LaunchFlows(trace, rank_index, selection_, &next_flow_id_);
  summary->flow_count += launches.size() / 2;
  ++summary->process_count;
  summary->slice_count += plan.slice_count;
  summary->left_out_slice_count += plan.left_out_count;

  writer->BeginProcess(plan.process, ProcessFacts(*run_, rank_index, plan));
  WriteSteps(rank_index, plan, writer, summary);
  WriteRequests(rank_index, plan, writer, summary);
  for (const PlannedTrack& planned : plan.tracks) WriteTrack(rank_index, planned, launches, writer, summary);
  if (plan.critical_path_track) WriteCriticalPath(rank_index, plan, writer, summary);
  if (plan.log_track) WriteLog(rank_index, plan, writer, summary);
  if (plan.has_memory) WriteMemory(rank_index, plan, writer, summary);
  WriteCounters(rank_index, writer, summary);
}

void TimelineContent::WriteSteps(size_t rank_index, const RankPlan& plan, EventWriter* writer, Summary* summary) const {
  const model::RankTrace& trace = run_->ranks[rank_index];
  const std::string process = std::to_string(plan.real_process_id);
  Slice slice;
  slice.category = model::Category::kUserAnnotation;
  slice.texts.emplace_back("rank", "");
  const std::string rank = std::to_string(trace.rank.value);
  slice.texts.back().second = rank;
  if (!trace.host.empty()) slice.texts.emplace_back("host", trace.host);
  if (plan.real_process_id != 0) slice.texts.emplace_back("process id", process);
  for (size_t level = 0; level < plan.step_tracks.size(); ++level) {
    writer->BeginTrack(plan.step_tracks[level]);
    ++summary->track_count;
    for (size_t row = 0; row < plan.steps.size(); ++row) {
      if (plan.step_levels.level(row) != level) continue;
      const std::string name = fmt::format("step {}", plan.step_numbers[plan.steps.name[row].value]);
      slice.text = name;
      slice.start_ns = ToTimeline(rank_index, plan.steps.start_ns[row]);
      slice.end_ns = ToTimeline(rank_index, plan.steps.end_ns(row));
      writer->AddSlice(slice);
      ++summary->step_count;
      Count(slice.start_ns, slice.end_ns, summary);
    }
    writer->EndTrack();
  }
}

void TimelineContent::WriteRequests(size_t rank_index, const RankPlan& plan, EventWriter* writer,
                                    Summary* summary) const {
  const model::RankTrace& trace = run_->ranks[rank_index];
  const std::vector<RequestFlow>& flows = links_.ranks[rank_index].requests;
  Slice slice;
  slice.category = model::Category::kUserAnnotation;
  for (size_t level = 0; level < plan.request_tracks.size(); ++level) {
    writer->BeginTrack(plan.request_tracks[level]);
    ++summary->track_count;
    for (size_t row = 0; row < plan.requests.size(); ++row) {
      if (plan.request_levels.level(row) != level) continue;
      const uint32_t request_idx = plan.requests.name[row].value;
      const model::RequestRecord& request = trace.requests[request_idx];
      const auto cut = plan.request_levels.cut_end_ns.find(row);
      const bool is_cut = cut != plan.request_levels.cut_end_ns.end();
      slice.start_ns = ToTimeline(rank_index, request.start_ns);
      slice.end_ns = ToTimeline(rank_index, is_cut ? cut->second : plan.requests.end_ns(row));
      slice.text = run_->names[request.name];
      const ContextTexts context(request.context);
      slice.texts.clear();
      context.AddTo(&slice);
      const std::string outputs = std::to_string(request.output_count);
      slice.texts.emplace_back("outputs", outputs);
      if (request.failed) slice.texts.emplace_back("failed", "true");
      if (request.unfinished) slice.texts.emplace_back("unfinished", "true");
      slice.flows.clear();
      for (auto flow = std::lower_bound(flows.begin(), flows.end(), request_idx,
                                        [](const RequestFlow&each, uint32_t idx) { return each.request_idx < idx; });
           flow != flows.end() && flow->request_idx == request_idx; ++flow) {
        slice.flows.push_back(flow->flow);
      }
      writer->AddSlice(slice);
      ++summary->request_count;
      Count(slice.start_ns, slice.end_ns, summary);
    }
    writer->EndTrack();
  }
}

void TimelineContent::WriteTrack(size_t rank_index, const PlannedTrack& planned, const std::vector<RowFlow>& launches,
                                 EventWriter* writer, Summary* summary) const {
  const model::RankTrace& trace = run_->ranks[rank_index];
  const auto track_idx = static_cast<uint32_t>(planned.track_idx);
  const model::Track& track = trace.tracks[planned.track_idx];
  const std::vector<CollectiveRow>& collective_rows = collective_rows_[rank_index];
  const RankLinks& links = links_.ranks[rank_index];
  const bool may_have_records = track.lane == Lane::kDevice || track.lane == Lane::kOperators;
  RecordFinder records(trace);
  Slice slice;
  for (uint32_t level = 0; level < planned.slice_tracks.size(); ++level) {
    auto launch = std::lower_bound(launches.begin(), launches.end(), RowRef{track_idx, 0},
                                   [](const RowFlow& flow, const RowRef& at) { return flow.at < at; });
    auto member = std::lower_bound(collective_rows.begin(), collective_rows.end(), RowRef{track_idx, 0},
                                   [](const CollectiveRow& row, const RowRef& at) { return row.at < at; });
    auto context = std::lower_bound(links.contexts.begin(), links.contexts.end(), std::pair(RowRef{track_idx, 0}, 0u));
    auto link = std::lower_bound(links.spans.begin(), links.spans.end(), RowRef{track_idx, 0},
                                 [](const RowFlow& flow, const RowRef& at) { return flow.at < at; });
    writer->BeginTrack(planned.slice_tracks[level]);
    ++summary->track_count;
    for (uint32_t row = 0; row < track.events.size(); ++row) {
      const RowRef here{track_idx, row};
      while (context != links.contexts.end() && context->first < here) ++context;
      while (link != links.spans.end() && link->at < here) ++link;
      while (launch != launches.end() && launch->at < here) ++launch;
      while (member != collective_rows.end() && member->at < here) ++member;
      if (planned.levels.level(row) != level) continue;
      if (!selection_.Contains(rank_index, track.lane, track.events.start_ns[row])) continue;
      slice.start_ns = ToTimeline(rank_index, track.events.start_ns[row]);
      slice.end_ns = ToTimeline(rank_index, track.events.end_ns(row));
      if (!planned.levels.cut_end_ns.empty()) {
        const auto cut = planned.levels.cut_end_ns.find(row);
        if (cut != planned.levels.cut_end_ns.end()) slice.end_ns = ToTimeline(rank_index, cut->second);
      }
      slice.name = track.events.name[row];
      slice.category = track.events.category[row];
      slice.correlation = track.events.correlation.empty() ? 0 : track.events.correlation[row];
      slice.record = may_have_records ? records.Find(track, row) : nullptr;
      slice.flows.clear();
      if (launch != launches.end() && launch->at == here) slice.flows.push_back(launch->flow);
      for (auto of_row = link; of_row != links.spans.end() && of_row->at == here; ++of_row)
        slice.flows.push_back(of_row->flow);
      slice.texts.clear();
      ContextTexts texts({});
      if (context != links.contexts.end() && context->first == here) {
        texts = ContextTexts(trace.linked_spans[context->second].context);
        texts.AddTo(&slice);
      }
      slice.facts = nullptr;
      CollectiveFacts facts;
      for (auto of_row = member; of_row != collective_rows.end() && of_row->at == here; ++of_row) {
        const analysis::CollectiveInstance& instance = collectives_->instances[of_row->instance_idx];
        facts = {instance.group, instance.name, instance.sequence, instance.bytes,
                 instance.members[of_row->member_idx].wait_ns};
        slice.facts = &facts;
        if (of_row->in_flow) slice.flows.push_back(of_row->flow);
      }
      writer->AddSlice(slice);
      if (level > 0) ++summary->moved_slice_count;
      Count(slice.start_ns, slice.end_ns, summary);
      if (++done_event_count_ % kReportedEvents == 0 && options_->on_progress) {
        options_->on_progress(static_cast<double>(done_event_count_) /
                              static_cast<double>(std::max<uint64_t>(total_event_count_, 1)));
      }
    }
    writer->EndTrack();
  }
}

void TimelineContent::WriteCriticalPath(size_t rank_index, const RankPlan& plan, EventWriter* writer,
                                        Summary* summary) const {
  const auto& steps = options_->selection.steps;
  std::vector<const analysis::CriticalPathPiece*> pieces;
  for (const analysis::CriticalPathStep& step : options_->critical_path->steps) {
    const bool selected = steps.empty() || std::any_of(steps.begin(), steps.end(), [&](const auto& range) {
                            return range.first <= step.step && step.step <= range.second;
                          });
    if (!selected) continue;
    for (const analysis::CriticalPathPiece& piece : step.pieces) {
      if (piece.rank_index == rank_index) pieces.push_back(&piece);
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto* a, const auto* b) { return a->start_ns < b->start_ns; });
  // Steps of ranks that drift apart overlap; slices of one track must not. What lies outside of what is written stays
  // out.
  int64_t from_ns = first_ns_;
  const int64_t to_ns = summary->last_ns ? *summary->last_ns + shift_ns_ : first_ns_;
  Slice slice;
  slice.category = model::Category::kOther;
  slice.texts.emplace_back("category", "");
  bool begun = false;
  for (const analysis::CriticalPathPiece* piece : pieces) {
    slice.start_ns = std::max(piece->start_ns + shift_ns_, from_ns);
    slice.end_ns = std::min(piece->start_ns + piece->duration_ns + shift_ns_, to_ns);
    if (slice.end_ns <= slice.start_ns) continue;
    if (!begun) writer->BeginTrack(*plan.critical_path_track);
    begun = true;
    const std::string_view name = run_->names[piece->name];
    slice.texts.back().second = graph::EdgeKindName(piece->kind);
    slice.text = name.empty() ? slice.texts.back().second : name;
    writer->AddSlice(slice);
    from_ns = slice.end_ns;
  }
  if (!begun) return;
  writer->EndTrack();
  ++summary->track_count;
}

}  // namespace lockstep::timeline
