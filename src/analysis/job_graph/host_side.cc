#include "analysis/job_graph/host_side.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "analysis/collective_calls.h"
#include "analysis/job_graph/chain.h"
#include "analysis/job_graph/host_walk.h"
#include "analysis/kernel_kind.h"

namespace lockstep::analysis {
namespace {

using graph::EdgeKind;
using model::Lane;

/// A thread hands over only where it has no event of its own for at least so long.
constexpr int64_t kHandOverStretchNs = 20'000;

/// A CPU backend's range may outlast the wake-up of the thread that waited for it: the backend's thread first signals
/// completion, then closes the range. It is closed at most this much later, and at most by this part of the wait.
constexpr int64_t kLateRecordNs = 5'000'000;
constexpr int64_t kLateRecordPart = 4;

/// End of a CPU backend's collective.
struct CollectiveEnd {
  int64_t start_ns = 0;
  int64_t time_ns = 0;
  uint32_t step = 0;
  uint32_t node = 0;
};

/// Writes one thread's chain from anchor to anchor.
class ThreadWriter {
 public:
  ThreadWriter(std::vector<RankStepGraph>* steps, std::vector<HostAnchor> anchors,
               const std::vector<CollectiveEnd>* collective_ends, bool is_main, Chain* chain)
      : steps_(*steps),
        anchors_(std::move(anchors)),
        collective_ends_(*collective_ends),
        is_main_(is_main),
        chain_(*chain) {
    std::stable_sort(anchors_.begin(), anchors_.end(), [](const HostAnchor& a, const HostAnchor& b) {
      return std::pair(a.step, a.time_ns) < std::pair(b.step, b.time_ns);
    });
    EnterStep();
  }

  void Visit(const HostStretch& stretch) {
    if (done()) return;
    EdgeKind kind = stretch.in_data_loader ? EdgeKind::kDataLoader : EdgeKind::kHost;
    if (!stretch.in_range && !is_main_ && !was_called_) kind = EdgeKind::kDelay;
    if (!stretch.is_work) WaitForCollectives(stretch, kind);
    while (!done() && anchors_[next_].time_ns <= stretch.end_ns) {
      Advance(anchors_[next_].time_ns, kind, stretch.label);
      Apply(anchors_[next_]);
      ++next_;
      EnterStep();
    }
    if (!done()) Advance(stretch.end_ns, kind, stretch.label);
  }

 private:
  bool done() const { return next_ == anchors_.size(); }

  void EnterStep() {
    if (done() || (next_ > 0 && anchors_[next_].step == anchors_[next_ - 1].step)) return;
    RankStepGraph& step = steps_[anchors_[next_].step];
    chain_.Begin(&step, RankStepGraph::kStart);
    now_ns_ = step.start_ns;
    was_called_ = false;
  }

  void Advance(int64_t time_ns, EdgeKind kind, NameId label) {
    if (time_ns <= now_ns_) return;
    chain_.Add(kind, label, time_ns - now_ns_);
    now_ns_ = time_ns;
  }

  void Apply(const HostAnchor& anchor) {
    switch (anchor.kind) {
      case HostAnchor::Kind::kDeparture: chain_.FlushTo(anchor.node); break;
      case HostAnchor::Kind::kArrival:
        chain_.Begin(&steps_[anchor.step], anchor.node);
        now_ns_ = anchor.time_ns;
        was_called_ = true;
        break;
      case HostAnchor::Kind::kWait: Wait(anchor.sources, anchor.wait_end_ns); break;
    }
  }

  void Wait(const std::vector<HostAnchor::Source>& sources, int64_t wait_end_ns) {
    RankStepGraph& step = steps_[anchors_[next_].step];
    const uint32_t over = chain_.NewNode();
    const bool waited = wait_end_ns > now_ns_;
    chain_.FlushTo(over);
    for (const HostAnchor::Source& source : sources) {
      step.edges.push_back(
          {source.node, over, -source.late_ns, NameId{}, source.late_ns > 0 ? EdgeKind::kDelay : EdgeKind::kSync});
    }
    if (waited) now_ns_ = wait_end_ns;
  }

  /// A stretch without an event of its own in which collectives end (or just after it, as recorded), and that goes on
  /// soon after the last of them.
  void WaitForCollectives(const HostStretch& stretch, EdgeKind kind) {
    while (next_end_ < collective_ends_.size() && collective_ends_[next_end_].time_ns <= stretch.start_ns) ++next_end_;
    if (next_end_ == collective_ends_.size()) return;
    const int64_t from_ns = std::max(stretch.start_ns, now_ns_);
    if (stretch.end_ns <= from_ns || stretch.end_ns == INT64_MAX) return;
    const int64_t until_ns = stretch.end_ns + std::min(kLateRecordNs, (stretch.end_ns - from_ns) / kLateRecordPart);
    std::vector<HostAnchor::Source> sources;
    int64_t last_ns = now_ns_;
    for (size_t i = next_end_; i < collective_ends_.size() && collective_ends_[i].time_ns <= until_ns; ++i) {
      const CollectiveEnd& end = collective_ends_[i];
      if (end.step != anchors_[next_].step || end.time_ns <= now_ns_ || end.start_ns >= stretch.end_ns) continue;
      sources.push_back({end.node, std::max<int64_t>(0, end.time_ns - stretch.end_ns)});
      last_ns = std::min(end.time_ns, stretch.end_ns);
    }
    if (sources.empty() || stretch.end_ns - last_ns > last_ns - from_ns) return;
    Advance(from_ns, kind, stretch.label);
    Wait(sources, last_ns);
  }

  std::vector<RankStepGraph>& steps_;
  std::vector<HostAnchor> anchors_;
  const std::vector<CollectiveEnd>& collective_ends_;
  bool is_main_;
  bool was_called_ = false;  ///< By the main thread: between ranges the thread works, it does not wait for the unknown.
  Chain& chain_;
  size_t next_ = 0;
  size_t next_end_ = 0;
  int64_t now_ns_ = 0;
};

class HostSide {
 public:
  HostSide(const RankContext& context, std::vector<HostAnchor> anchors, std::vector<RankStepGraph>* steps)
      : context_(context), steps_(*steps), roles_(context.names()) {
    for (HostAnchor& anchor : anchors) AddAnchor(std::move(anchor));
  }

  void Run() {
    FindThreads();
    if (threads_.empty()) return;
    AddStepEnds();
    AddCollectives();
    AddHandOvers();
    Chain chain(context_.names().size());
    for (size_t i = 0; i < threads_.size(); ++i) {
      const auto anchors = anchors_.find(threads_[i].thread);
      if (anchors == anchors_.end()) continue;
      ThreadWriter writer(&steps_, std::move(anchors->second), &collective_ends_, i == main_, &chain);
      WalkHostThread(context_, threads_[i], &roles_, [&](const HostStretch& stretch) { writer.Visit(stretch); });
    }
  }

 private:
  void AddAnchor(HostAnchor anchor) {
    const HostThread thread = anchor.thread;
    anchors_[thread].push_back(std::move(anchor));
  }

  uint32_t AddDeparture(HostThread thread, int64_t time_ns, uint32_t step) {
    HostAnchor anchor;
    anchor.thread = thread;
    anchor.time_ns = time_ns;
    anchor.step = step;
    anchor.node = steps_[step].node_count++;
    const uint32_t node = anchor.node;
    AddAnchor(std::move(anchor));
    return node;
  }

  /// The main thread is the one that marks the steps; without any, the one with the most operators.
  void FindThreads() {
    std::map<HostThread, HostTracks> threads;
    const auto& tracks = context_.trace().tracks;
    std::map<HostThread, std::pair<size_t, size_t>> weights;  // steps, operators
    for (size_t t = 0; t < tracks.size(); ++t) {
      if (tracks[t].lane != Lane::kOperators && tracks[t].lane != Lane::kRuntime) continue;
      const HostThread thread{tracks[t].process_id, tracks[t].thread_id};
      threads[thread].thread = thread;
      threads[thread].tracks.push_back(static_cast<uint32_t>(t));
      if (tracks[t].lane != Lane::kOperators) continue;
      auto& [step_count, operator_count] = weights[thread];
      operator_count += tracks[t].events.size();
      for (const NameId name : tracks[t].events.name) step_count += roles_[name] == HostRole::kStep ? 1 : 0;
    }
    std::pair<size_t, size_t> heaviest{0, 0};
    for (auto& [thread, host] : threads) {
      if (weights[thread] > heaviest) {
        heaviest = weights[thread];
        main_ = threads_.size();
      }
      threads_.push_back(std::move(host));
    }
  }

  const HostThread& main_thread() const { return threads_[main_].thread; }

  /// The main thread's own end of each step holds the step up; what it does beyond belongs to the next one.
  void AddStepEnds() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      int64_t end_ns = steps_[i].end_ns;
      if (i < context_.steps.size()) {
        end_ns = context_.steps[i].end_ns;
      } else {
        end_ns = LastEnd();
      }
      if (end_ns <= steps_[i].start_ns || end_ns > steps_[i].end_ns) continue;
      const uint32_t node = AddDeparture(main_thread(), end_ns, static_cast<uint32_t>(i));
      steps_[i].edges.push_back({node, RankStepGraph::kEnd, 0, NameId{}, EdgeKind::kOrder});
    }
  }

  int64_t LastEnd() const {
    int64_t last_ns = INT64_MIN;
    for (const uint32_t track : threads_[main_].tracks) {
      const model::EventColumns& events = context_.trace().tracks[track].events;
      for (size_t row = 0; row < events.size(); ++row) last_ns = std::max(last_ns, events.end_ns(row));
    }
    return last_ns;
  }

  void AddCollectives() {
    const auto& records = context_.trace().collectives;
    const bool has_any = std::any_of(records.begin(), records.end(), [&](const model::CollectiveRecord& record) {
      return record.source == model::CollectiveRecord::Source::kAnnotation &&
             IsCpuCollectiveName(context_.names()[record.event_name]);
    });
    if (!has_any) return;
    for (const CollectiveCall& call : FindCollectiveCalls(*context_.shared, context_.rank_index)) {
      if (call.on_device) continue;
      const size_t index = StepAt(steps_, call.start_ns);
      if (index == steps_.size()) continue;
      RankStepGraph& step = steps_[index];
      RankCollective collective;
      collective.start_ns = call.start_ns;
      collective.end_ns = call.start_ns + call.duration_ns;
      collective.arrival = step.node_count++;
      collective.end = step.node_count++;
      HostThread thread = main_thread();
      int64_t issue_ns = call.start_ns;
      if (call.issue && call.issue->trace_ns <= call.start_ns) {
        issue_ns = std::max(call.issue->trace_ns, step.start_ns);
        thread = {call.issue->process_id, call.issue->thread_id};
      }
      const uint32_t issued = AddDeparture(thread, issue_ns, static_cast<uint32_t>(index));
      step.edges.push_back({issued, collective.arrival, call.start_ns - issue_ns, NameId{}, EdgeKind::kLaunch});
      const bool is_own_call = call.issue && thread == main_thread() && issue_ns == call.start_ns;
      if (!is_own_call) {
        collective_ends_.push_back({call.start_ns, collective.end_ns, static_cast<uint32_t>(index), collective.end});
      } else if (const auto blocked_ns = BlockedSince(collective.end_ns)) {
        HostAnchor wait;
        wait.thread = thread;
        wait.kind = HostAnchor::Kind::kWait;
        wait.time_ns = std::max(*blocked_ns, call.start_ns);
        wait.end_ns = wait.wait_end_ns = collective.end_ns;
        wait.step = static_cast<uint32_t>(index);
        wait.sources.push_back({collective.end, 0});
        AddAnchor(std::move(wait));
      }
      step.collectives.push_back(collective);
    }
    std::stable_sort(collective_ends_.begin(), collective_ends_.end(),
                     [](const CollectiveEnd& a, const CollectiveEnd& b) { return a.time_ns < b.time_ns; });
  }

  /// Start of the range in which the main thread itself was in a collective, or waited for one, until `end_ns` (MPI's
  /// calls, NVTX's ranges); absent when no such range ends there.
  std::optional<int64_t> BlockedSince(int64_t end_ns) {
    if (!has_own_ranges_) {
      has_own_ranges_ = true;
      for (const uint32_t track : threads_[main_].tracks) {
        const model::Track& own = context_.trace().tracks[track];
        if (own.lane != Lane::kOperators) continue;
        for (size_t row = 0; row < own.events.size(); ++row) {
          if (roles_[own.events.name[row]] != HostRole::kCollective) continue;
          own_ranges_.insert_or_assign(own.events.end_ns(row), own.events.start_ns[row]);
        }
      }
    }
    const auto range = own_ranges_.find(end_ns);
    if (range == own_ranges_.end()) return std::nullopt;
    return range->second;
  }

  void AddHandOvers() {
    if (threads_.size() < 2) return;
    std::vector<HostStretch> stretches;
    WalkHostThread(context_, threads_[main_], &roles_, [&](const HostStretch& stretch) {
      if (!stretch.is_work && stretch.start_ns > INT64_MIN && stretch.end_ns < INT64_MAX &&
          stretch.end_ns - stretch.start_ns >= kHandOverStretchNs) {
        stretches.push_back(stretch);
      }
    });
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (i != main_) AddHandOversTo(threads_[i], stretches);
    }
  }

  /// Ranges of a thread that lie in one stretch of the main thread.
  struct Burst {
    size_t stretch = SIZE_MAX;
    int64_t first_ns = 0;
    int64_t last_ns = 0;
    int64_t busy_ns = 0;
    bool whole = true;
  };

  void AddHandOversTo(const HostTracks& host, const std::vector<HostStretch>& stretches) {
    Burst burst;
    size_t candidate = 0;
    const auto close = [&] {
      if (burst.stretch < stretches.size() && burst.whole) AddHandOver(host.thread, stretches[burst.stretch], burst);
      burst = {};
    };
    for (const uint32_t track : host.tracks) {
      if (context_.trace().tracks[track].lane != Lane::kOperators) continue;
      const model::EventColumns& events = context_.trace().tracks[track].events;
      int64_t covered_ns = INT64_MIN;
      for (size_t row = 0; row < events.size(); ++row) {
        const int64_t start_ns = events.start_ns[row];
        const int64_t end_ns = events.end_ns(row);
        if (end_ns <= covered_ns || roles_[events.name[row]] == HostRole::kCollective) continue;
        while (candidate < stretches.size() && stretches[candidate].end_ns <= start_ns) ++candidate;
        if (candidate == stretches.size()) break;
        const bool inside = stretches[candidate].start_ns <= start_ns;
        if (burst.stretch != candidate) close();
        if (inside) {
          if (burst.stretch != candidate) burst = {candidate, start_ns, end_ns, 0, true};
          burst.whole = burst.whole && end_ns <= stretches[candidate].end_ns;
          burst.busy_ns += end_ns - std::max(start_ns, covered_ns);
          burst.last_ns = std::max(burst.last_ns, end_ns);
        }
        covered_ns = end_ns;
      }
      close();
      candidate = 0;
    }
  }

  void AddHandOver(HostThread thread, const HostStretch& stretch, const Burst& burst) {
    if (burst.busy_ns < (stretch.end_ns - stretch.start_ns) / 3) return;
    const size_t index = StepAt(steps_, burst.last_ns);
    if (index == steps_.size()) return;
    RankStepGraph& step = steps_[index];
    const auto step_index = static_cast<uint32_t>(index);
    if (stretch.start_ns >= step.start_ns) {
      const uint32_t left = AddDeparture(main_thread(), stretch.start_ns, step_index);
      HostAnchor arrival;
      arrival.thread = thread;
      arrival.kind = HostAnchor::Kind::kArrival;
      arrival.time_ns = burst.first_ns;
      arrival.step = step_index;
      arrival.node = step.node_count++;
      step.edges.push_back({left, arrival.node, burst.first_ns - stretch.start_ns, stretch.label, EdgeKind::kHost});
      AddAnchor(std::move(arrival));
    }
    HostAnchor wait;
    wait.thread = main_thread();
    wait.kind = HostAnchor::Kind::kWait;
    wait.time_ns = std::max(stretch.start_ns, step.start_ns);
    wait.end_ns = stretch.end_ns;
    wait.wait_end_ns = burst.last_ns;
    wait.step = step_index;
    wait.sources.push_back({AddDeparture(thread, burst.last_ns, step_index), 0});
    AddAnchor(std::move(wait));
  }

  const RankContext& context_;
  std::vector<RankStepGraph>& steps_;
  HostRoles roles_;
  std::vector<HostTracks> threads_;
  size_t main_ = 0;
  std::map<HostThread, std::vector<HostAnchor>> anchors_;
  std::vector<CollectiveEnd> collective_ends_;
  bool has_own_ranges_ = false;
  std::map<int64_t, int64_t> own_ranges_;  ///< By end: start of the main thread's own ranges of collectives.
};

}  // namespace

void AddHostSide(const RankContext& context, std::vector<HostAnchor> anchors, std::vector<RankStepGraph>* steps) {
  HostSide(context, std::move(anchors), steps).Run();
}

}  // namespace lockstep::analysis
