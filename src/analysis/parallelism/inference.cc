#include "analysis/parallelism/inference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/believable_time.h"
#include "analysis/device_tracks.h"
#include "analysis/interval_cover.h"
#include "analysis/pass.h"
#include "analysis/quantiles.h"
#include "analysis/table.h"

namespace lockstep::analysis {
namespace {

/// A marked range, on the CPU and in what it launched.
struct MarkedRange {
  int64_t start_ns = 0;
  int64_t range_end_ns = 0;
  int64_t end_ns = 0;  ///< Of the range or of the device work launched in it.
  InferenceMark mark;  ///< Of phases.
};

/// The marks of one CPU thread, outermost ones, by start; they do not overlap.
struct ThreadMarks {
  std::vector<MarkedRange> phases;
  std::vector<MarkedRange> requests;
};

MarkedRange* Around(std::vector<MarkedRange>* ranges, int64_t time_ns) {
  const auto after = std::upper_bound(ranges->begin(), ranges->end(), time_ns,
                                      [](int64_t t, const MarkedRange& range) { return t < range.start_ns; });
  if (after == ranges->begin() || time_ns >= (after - 1)->range_end_ns) return nullptr;
  return &*(after - 1);
}

void Extend(MarkedRange* range, int64_t device_end_ns) {
  int64_t length_ns = 0;
  if (range == nullptr || __builtin_sub_overflow(device_end_ns, range->start_ns, &length_ns)) return;
  if (length_ns <= kMaxBelievableNs) range->end_ns = std::max(range->end_ns, device_end_ns);
}

DurationQuantiles QuantilesOf(std::vector<int64_t> durations) {
  std::sort(durations.begin(), durations.end());
  return {std::llround(QuantileOfSorted(durations, 0.5)), std::llround(QuantileOfSorted(durations, 0.95)),
          std::llround(QuantileOfSorted(durations, 0.99))};
}

/// The phases of one row while they are added.
struct PhaseSums {
  std::vector<int64_t> durations;
  int64_t busy_ns = 0;
  std::optional<int64_t> requests = 0;
  std::optional<int64_t> tokens = 0;
};

/// Sum of what is known; unknown from the first part on that is not.
void AddCount(std::optional<int64_t> part, std::optional<int64_t>* sum) {
  int64_t total = 0;
  if (!part || !*sum || __builtin_add_overflow(**sum, *part, &total)) {
    sum->reset();
  } else {
    *sum = total;
  }
}

class MarkFinder {
 public:
  explicit MarkFinder(const RankContext& context) : context_(context), threads_(context.trace().tracks.size()) {}

  /// Parallel to the tracks of the trace.
  std::vector<ThreadMarks> Find() {
    const auto& tracks = context_.trace().tracks;
    for (size_t t = 0; t < tracks.size(); ++t) {
      if (tracks[t].lane == model::Lane::kOperators) Walk(tracks[t].events, &threads_[t]);
    }
    DropDoubtful();
    return std::move(threads_);
  }

 private:
  struct Verdict {
    std::optional<InferenceMark> phase;
    bool request = false;
  };

  /// Each name is looked at once.
  const Verdict& VerdictOf(NameId name) {
    const auto [slot, is_new] = verdicts_.try_emplace(name.value);
    if (is_new) {
      const std::string_view text = context_.names()[name];
      slot->second.phase = ParseInferenceMark(text);
      slot->second.request = !slot->second.phase && IsRequestMark(text);
    }
    return slot->second;
  }

  /// Events are sorted by (start, longer first) and nest, so a range inside another begins before its end.
  void Walk(const model::EventColumns& events, ThreadMarks* marks) {
    for (size_t i = 0; i < events.size(); ++i) {
      if (events.category[i] != model::Category::kUserAnnotation) continue;
      const int64_t start_ns = events.start_ns[i];
      if (context_.cpu_cutoff_ns && start_ns >= *context_.cpu_cutoff_ns) continue;
      if (events.duration_ns[i] < 0 || events.duration_ns[i] > kMaxBelievableNs) continue;
      const Verdict& verdict = VerdictOf(events.name[i]);
      if (!verdict.phase && !verdict.request) continue;
      std::vector<MarkedRange>& ranges = verdict.request ? marks->requests : marks->phases;
      if (!ranges.empty() && start_ns < ranges.back().range_end_ns) continue;
      ranges.push_back({start_ns, events.end_ns(i), events.end_ns(i), verdict.phase.value_or(InferenceMark())});
    }
  }

  /// "decode" alone may decode an image or audio, so a prefill or a request must occur as well. If guessed tokens are
  /// verified, a decode step may be the guessing model's, whose tokens are not the job's.
  void DropDoubtful() {
    bool generates_text = false;
    bool speculative = false;
    for (const ThreadMarks& thread : threads_) {
      generates_text = generates_text || !thread.requests.empty();
      for (const MarkedRange& range : thread.phases) {
        generates_text = generates_text || range.mark.phase != InferencePhase::kDecode;
        speculative = speculative || range.mark.speculative;
      }
    }
    for (ThreadMarks& thread : threads_) {
      if (!generates_text) {
        std::erase_if(thread.phases, [](const auto& range) { return range.mark.engine == InferenceEngine::kPlain; });
      }
      for (MarkedRange& range : thread.phases) {
        if (speculative && range.mark.phase == InferencePhase::kDecode) range.mark.token_count.reset();
      }
    }
  }

  const RankContext& context_;
  std::vector<ThreadMarks> threads_;
  std::unordered_map<uint32_t, Verdict> verdicts_;
};

class InferenceMapper {
 public:
  explicit InferenceMapper(const RankContext& context) : context_(context), threads_(MarkFinder(context).Find()) {}

  InferencePartial Map() {
    InferencePartial partial;
    partial.recorded_requests = RecordedRequests();
    const bool any = std::any_of(threads_.begin(), threads_.end(), [](const ThreadMarks& thread) {
      return !thread.phases.empty() || !thread.requests.empty();
    });
    if (!any) return partial;
    ReadDevices();
    partial.rows = Rows();
    partial.requests = Requests();
    return partial;
  }

 private:
  /// When the device worked, and until when on what each range launched.
  void ReadDevices() {
    const model::RankTrace& trace = context_.trace();
    DeviceTracks all;
    for (const DeviceTracks& device : FindDeviceTracks(trace))
      all.tracks.insert(all.tracks.end(), device.tracks.begin(), device.tracks.end());
    has_device_ = !all.tracks.empty();
    auto cursors = MakeCursors(context_, all);
    MergeByStart(cursors, [&](const DeviceCursor& cursor) { busy_.Add(cursor.start(), cursor.end()); });
    // Launches lie on a thread's track of its own, beside that of its annotations.
    std::map<std::pair<int64_t, int64_t>, size_t> by_thread;
    for (size_t t = 0; t < threads_.size(); ++t) {
      if (threads_[t].phases.empty() && threads_[t].requests.empty()) continue;
      by_thread.emplace(std::pair(trace.tracks[t].process_id, trace.tracks[t].thread_id), t);
    }
    for (const size_t t : all.tracks) {
      const model::EventColumns& events = trace.tracks[t].events;
      for (size_t i = 0; i < events.size(); ++i) {
        const LaunchRef launch = context_.launches[t][i];
        if (!launch.found() || !context_.InScope(t, i)) continue;
        const model::Track& launcher = trace.tracks[launch.track];
        const auto thread = by_thread.find({launcher.process_id, launcher.thread_id});
        if (thread == by_thread.end()) continue;
        const int64_t launch_ns = launcher.events.start_ns[launch.row];
        Extend(Around(&threads_[thread->second].phases, launch_ns), events.end_ns(i));
        Extend(Around(&threads_[thread->second].requests, launch_ns), events.end_ns(i));
      }
    }
  }

  std::vector<InferenceRow> Rows() const {
    std::map<std::pair<InferenceEngine, InferencePhase>, PhaseSums> by_kind;
    for (const ThreadMarks& thread : threads_) {
      int64_t free_ns = INT64_MIN;
      for (const MarkedRange& range : thread.phases) {
        const int64_t start_ns = std::max(range.start_ns, free_ns);
        free_ns = std::max(range.end_ns, free_ns);
        PhaseSums& sums = by_kind[{range.mark.engine, range.mark.phase}];
        sums.durations.push_back(free_ns - start_ns);
        sums.busy_ns += busy_.Covered(start_ns, free_ns);
        AddCount(range.mark.request_count, &sums.requests);
        AddCount(range.mark.token_count, &sums.tokens);
      }
    }
    std::vector<InferenceRow> rows;
    for (auto& [kind, sums] : by_kind) rows.push_back(RowOf(kind, std::move(sums)));
    return rows;
  }

  InferenceRow RowOf(std::pair<InferenceEngine, InferencePhase> kind, PhaseSums sums) const {
    InferenceRow row;
    row.rank_index = context_.rank_index;
    std::tie(row.engine, row.phase) = kind;
    row.phase_count = sums.durations.size();
    for (const int64_t duration_ns : sums.durations) {
      if (__builtin_add_overflow(row.total_ns, duration_ns, &row.total_ns)) row.total_ns = INT64_MAX / 2;
    }
    row.duration = QuantilesOf(std::move(sums.durations));
    if (sums.requests)
      row.mean_request_count = static_cast<double>(*sums.requests) / static_cast<double>(row.phase_count);
    row.token_count = sums.tokens;
    const auto total_ns = static_cast<double>(row.total_ns);
    if (sums.tokens && row.total_ns > 0) row.tokens_per_s = static_cast<double>(*sums.tokens) * 1e9 / total_ns;
    if (has_device_) {
      row.busy_ns = sums.busy_ns;
      if (row.total_ns > 0) row.busy_ratio = static_cast<double>(sums.busy_ns) / total_ns;
    }
    return row;
  }

  std::optional<InferenceRequestRow> Requests() const {
    std::vector<int64_t> latencies;
    std::vector<int64_t> first_tokens;
    for (const ThreadMarks& thread : threads_) {
      for (const MarkedRange& request : thread.requests) {
        latencies.push_back(request.end_ns - request.start_ns);
        if (const auto end_ns = PrefillEnd(thread.phases, request)) first_tokens.push_back(*end_ns - request.start_ns);
      }
    }
    if (latencies.empty()) return std::nullopt;
    InferenceRequestRow row;
    row.rank_index = context_.rank_index;
    row.request_count = latencies.size();
    row.latency_count = latencies.size();
    row.latency = QuantilesOf(std::move(latencies));
    row.first_token_count = first_tokens.size();
    if (!first_tokens.empty()) row.first_token = QuantilesOf(std::move(first_tokens));
    return row;
  }

  /// Those that the program recorded, by kind. What failed or had not ended has no latency that others compare with.
  std::vector<InferenceRequestRow> RecordedRequests() const {
    struct Kind {
      InferenceRequestRow row;
      RequestOutcomes outcomes;
      std::vector<int64_t> latencies;
      std::vector<int64_t> first_outputs;
    };
    std::map<std::string_view, Kind> kinds;
    for (const model::RequestRecord& request : context_.trace().requests) {
      Kind& kind = kinds[context_.names()[request.name]];
      ++kind.row.request_count;
      kind.outcomes.kind = request.name;
      kind.outcomes.failed_count += request.failed ? 1 : 0;
      kind.outcomes.unfinished_count += request.unfinished ? 1 : 0;
      const int64_t room = INT64_MAX - kind.outcomes.output_count;
      kind.outcomes.output_count += std::clamp<int64_t>(request.output_count, 0, room);
      if (request.failed || request.unfinished) continue;
      kind.latencies.push_back(request.duration_ns);
      if (request.first_output_ns) kind.first_outputs.push_back(*request.first_output_ns - request.start_ns);
    }
    std::vector<InferenceRequestRow> rows;
    for (auto& [name, kind] : kinds) {
      InferenceRequestRow row = kind.row;
      row.rank_index = context_.rank_index;
      row.recorded = kind.outcomes;
      row.latency_count = kind.latencies.size();
      if (!kind.latencies.empty()) row.latency = QuantilesOf(std::move(kind.latencies));
      row.first_token_count = kind.first_outputs.size();
      if (!kind.first_outputs.empty()) row.first_token = QuantilesOf(std::move(kind.first_outputs));
      rows.push_back(std::move(row));
    }
    return rows;
  }

  /// End of the prefill inside a request; prompts that are read in pieces have several, before the first other phase.
  static std::optional<int64_t> PrefillEnd(const std::vector<MarkedRange>& phases, const MarkedRange& request) {
    std::optional<int64_t> end_ns;
    auto phase = std::lower_bound(phases.begin(), phases.end(), request.start_ns,
                                  [](const MarkedRange& range, int64_t time_ns) { return range.start_ns < time_ns; });
    for (; phase != phases.end() && phase->range_end_ns <= request.range_end_ns; ++phase) {
      if (phase->mark.phase != InferencePhase::kPrefill) break;
      end_ns = std::max(end_ns.value_or(phase->end_ns), phase->end_ns);
    }
    return end_ns;
  }

  const RankContext& context_;
  std::vector<ThreadMarks> threads_;
  IntervalCover busy_;
  bool has_device_ = false;
};

}  // namespace

InferencePartial MapInference(const RankContext& context) { return InferenceMapper(context).Map(); }

namespace {

std::vector<RowColumn<InferenceRow>> PhaseColumns() {
  using Row = InferenceRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      NamedField<&Row::engine, InferenceEngineName>("engine",
                                                    "Whose names they are: `vllm`, `sglang`, `tensorrt_llm`, `plain`."),
      NamedField<&Row::phase, InferencePhaseName>("phase",
                                                  "`prefill`: prompts are read; `decode`: tokens are generated; "
                                                  "`mixed`: both in one batch, or the name does not tell."),
      Field<&Row::phase_count>("phase_count", "count", "Marked ranges."),
      Field<&Row::total_ns>("total_ns", "ns", "Sum of their times, to the end of the device work launched in them."),
      Field<&Row::duration, &DurationQuantiles::median_ns>("median_ns", "ns", "Median of their times."),
      Field<&Row::duration, &DurationQuantiles::p95_ns>("p95_ns", "ns", "95th percentile of their times."),
      Field<&Row::duration, &DurationQuantiles::p99_ns>("p99_ns", "ns", "99th percentile of their times."),
      Field<&Row::mean_request_count>("mean_request_count", "count", "Mean batch size: requests in a phase.",
                                      "a name does not say"),
      Field<&Row::token_count>("token_count", "count", "Tokens of prompts read and tokens generated.",
                               "a name does not say"),
      Field<&Row::tokens_per_s>("tokens_per_s", "1/s", "`token_count` / `total_ns`.",
                                "`token_count` is null, or the time is 0"),
      Field<&Row::busy_ns>("busy_ns", "ns", "Part of `total_ns` in which a device works.", "no device events"),
      Field<&Row::busy_ratio>("busy_ratio", "0..1", "`busy_ns` / `total_ns`.", "no device events, or the time is 0"),
  };
}

Cell Latency(const InferenceRequestRow& row, int64_t DurationQuantiles::*quantile) {
  if (row.latency_count == 0) return std::monostate{};
  return Cell(row.latency.*quantile);
}

std::vector<RowColumn<InferenceRequestRow>> RequestColumns() {
  using Row = InferenceRequestRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      Field<&Row::recorded, &RequestOutcomes::kind>("kind", "", "What the program calls them.", "ranges mark them"),
      Field<&Row::request_count>("request_count", "count", "Marked requests."),
      Field<&Row::recorded, &RequestOutcomes::failed_count>("failed_count", "count", "Those that failed.",
                                                            "ranges mark them"),
      Field<&Row::recorded, &RequestOutcomes::unfinished_count>(
          "unfinished_count", "count", "Those that were under way when the recording ended.", "ranges mark them"),
      Field<&Row::recorded, &RequestOutcomes::output_count>(
          "output_count", "count", "Tokens, or what the program counts, of all of them.", "ranges mark them"),
      {"median_ns", ColumnType::kInteger, "ns", "Median of the latencies of those that ended and did not fail.",
       "there is none", [](const TableSource&, const Row& row) { return Latency(row, &DurationQuantiles::median_ns); }},
      {"p95_ns", ColumnType::kInteger, "ns", "95th percentile of these latencies.", "there is none",
       [](const TableSource&, const Row& row) { return Latency(row, &DurationQuantiles::p95_ns); }},
      {"p99_ns", ColumnType::kInteger, "ns", "99th percentile of these latencies.", "there is none",
       [](const TableSource&, const Row& row) { return Latency(row, &DurationQuantiles::p99_ns); }},
      Field<&Row::first_token_count>("first_token_count", "count",
                                     "Requests with a marked prefill inside, or an output that the program recorded."),
      Field<&Row::first_token, &DurationQuantiles::median_ns>(
          "first_token_median_ns", "ns",
          "Median of the times from their start to the end of the prefill, or the first output.", "no request has one"),
      Field<&Row::first_token, &DurationQuantiles::p95_ns>("first_token_p95_ns", "ns",
                                                           "95th percentile of these times.", "no request has one"),
      Field<&Row::first_token, &DurationQuantiles::p99_ns>("first_token_p99_ns", "ns",
                                                           "99th percentile of these times.", "no request has one"),
  };
}

}  // namespace

Pass InferencePass() {
  return ReducingPass<Inference, InferencePartial>(
      {.question = "How long are prefill, decode and requests, where they are marked?",
       .tables = {DeclareTable("inference", "inference",
                               "Marked phases of a model that generates text, of one rank and kind", &Inference::rows,
                               PhaseColumns()),
                  DeclareTable("inference_requests", "inference_requests", "The requests that a rank marks, by kind",
                               &Inference::requests, RequestColumns())}},
      MapInference, [](PassContext&, std::vector<InferencePartial> ranks) {
        Inference all;
        for (InferencePartial& rank : ranks) {
          MoveRows(&rank.rows, &all.rows);
          if (rank.requests) all.requests.push_back(*rank.requests);
          MoveRows(&rank.recorded_requests, &all.requests);
        }
        return all;
      });
}

}  // namespace lockstep::analysis
