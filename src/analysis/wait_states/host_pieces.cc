#include "analysis/wait_states/host_pieces.h"

#include <algorithm>
#include <limits>

#include "analysis/pass.h"

namespace lockstep::analysis {
namespace {

bool IsNamedKind(HostKind kind) {
  return kind == HostKind::kDataLoading || kind == HostKind::kGarbageCollection || kind == HostKind::kAllocator ||
         kind == HostKind::kCheckpoint;
}

RootCause CauseOf(HostKind kind) {
  switch (kind) {
    case HostKind::kDataLoading: return RootCause::kDataLoading;
    case HostKind::kGarbageCollection: return RootCause::kGarbageCollection;
    case HostKind::kAllocator: return RootCause::kAllocator;
    case HostKind::kCheckpoint: return RootCause::kCheckpoint;
    case HostKind::kLaunch: return RootCause::kLaunchDelay;
    default: return RootCause::kHost;
  }
}

struct OpenHostRange {
  int64_t end_ns = 0;
  NameId name;                         // what its time is booked under; empty: nothing
  HostKind kind = HostKind::kUnknown;  // likewise
  HostGrip grip = HostGrip::kAround;
};

class LaneCursor {
 public:
  explicit LaneCursor(const model::EventColumns* events) : events_(events) {}
  bool done() const { return row_ >= events_->size(); }
  int64_t start() const { return events_->start_ns[row_]; }
  int64_t end() const { return events_->end_ns(row_); }
  NameId name() const { return events_->name[row_]; }
  model::Category category() const { return events_->category[row_]; }
  void Next() { ++row_; }

 private:
  const model::EventColumns* events_;
  size_t row_ = 0;
};

/// Time moves forward; what passes inside a window goes to the range on top of the stack.
class Cutter {
 public:
  Cutter(const std::vector<Interval>& windows, HostKinds* kinds, std::vector<ThreadPortion>* pieces,
         std::vector<Interval>* rest)
      : windows_(windows), kinds_(kinds), pieces_(pieces), rest_(rest) {}

  bool done() const { return window_ >= windows_.size(); }

  void Advance(int64_t to_ns) {
    while (!stack_.empty() && stack_.back().end_ns <= to_ns) {
      Pass(stack_.back().end_ns);
      stack_.pop_back();
    }
    Pass(to_ns);
  }

  void Open(const LaneCursor& event) {
    const HostKind kind = (*kinds_)[event.name()];
    if (kind == HostKind::kSkipped) return;
    OpenHostRange range;
    range.end_ns = event.end();
    const OpenHostRange* around = stack_.empty() ? nullptr : &stack_.back();
    if (around != nullptr) range.end_ns = std::min(range.end_ns, around->end_ns);
    const bool is_call = event.category() == model::Category::kRuntime || event.category() == model::Category::kDriver;
    const bool inherits = around != nullptr && around->name.value != 0;
    if (kind == HostKind::kStep) {
      if (inherits) range = {range.end_ns, around->name, around->kind, around->grip};
    } else if (inherits && IsNamedKind(around->kind) && (!IsNamedKind(kind) || kind == around->kind)) {
      range = {range.end_ns, around->name, around->kind, around->grip};  // part of the named thing
    } else if (is_call && inherits && kind == HostKind::kWork) {
      range = {range.end_ns, around->name, around->kind, around->grip};
    } else {
      range.name = event.name();
      range.kind = kind;
      range.grip = IsNamedKind(kind)                                                        ? HostGrip::kNamed
                   : event.category() == model::Category::kCpuOp && kind == HostKind::kWork ? HostGrip::kOperator
                                                                                            : HostGrip::kAround;
    }
    stack_.push_back(range);
  }

 private:
  void Pass(int64_t to_ns) {
    while (window_ < windows_.size() && now_ns_ < to_ns) {
      const Interval& window = windows_[window_];
      const int64_t from_ns = std::max(now_ns_, window.start_ns);
      const int64_t until_ns = std::min(to_ns, window.end_ns);
      if (from_ns < until_ns) {
        if (stack_.empty() || stack_.back().name.value == 0) {
          rest_->push_back({from_ns, until_ns});
        } else {
          const OpenHostRange& top = stack_.back();
          pieces_->push_back({{from_ns, until_ns}, CauseOf(top.kind), top.name, top.grip});
        }
      }
      if (window.end_ns > to_ns) break;
      now_ns_ = std::max(now_ns_, until_ns);
      ++window_;
    }
    now_ns_ = std::max(now_ns_, to_ns);
  }

  const std::vector<Interval>& windows_;
  HostKinds* const kinds_;
  std::vector<ThreadPortion>* const pieces_;
  std::vector<Interval>* const rest_;
  int64_t now_ns_ = std::numeric_limits<int64_t>::min();
  size_t window_ = 0;
  std::vector<OpenHostRange> stack_;
};

}  // namespace

HostThreads::HostThreads(const model::RankTrace& trace, HostKinds* kinds) : kinds_(kinds) {
  for (const model::Track& track : trace.tracks) {
    if (track.events.empty()) continue;
    if (track.lane != model::Lane::kOperators && track.lane != model::Lane::kPython &&
        track.lane != model::Lane::kRuntime) {
      continue;
    }
    Lanes& lanes = threads_[{track.process_id, track.thread_id}];
    lanes.events.push_back(&track.events);
    if (track.lane != model::Lane::kOperators) continue;
    for (const NameId name : track.events.name) {
      const HostKind kind = (*kinds_)[name];
      lanes.has_step = lanes.has_step || kind == HostKind::kStep;
      lanes.has_operators = lanes.has_operators || kind != HostKind::kSkipped;
    }
  }
}

std::vector<ThreadKey> HostThreads::Issuers() const {
  std::vector<ThreadKey> keys;
  for (const auto& [key, lanes] : threads_) {
    if (lanes.has_step || issuers_.count(key) > 0) keys.push_back(key);
  }
  return keys;
}

std::vector<ThreadKey> HostThreads::Workers() const {
  std::vector<ThreadKey> keys;
  for (const auto& [key, lanes] : threads_) {
    if (lanes.has_operators) keys.push_back(key);
  }
  return keys;
}

std::vector<ThreadPortion> HostThreads::Cut(ThreadKey thread, const std::vector<Interval>& windows,
                                            std::vector<Interval>* rest) {
  std::vector<ThreadPortion> pieces;
  const auto found = threads_.find(thread);
  if (found == threads_.end() || windows.empty()) {
    rest->insert(rest->end(), windows.begin(), windows.end());
    return pieces;
  }
  Cutter cutter(windows, kinds_, &pieces, rest);
  std::vector<LaneCursor> cursors(found->second.events.begin(), found->second.events.end());
  MergeByStart(cursors, [&](const LaneCursor& event) {
    if (cutter.done()) return;
    cutter.Advance(event.start());
    cutter.Open(event);
  });
  cutter.Advance(windows.back().end_ns);
  return pieces;
}

}  // namespace lockstep::analysis
