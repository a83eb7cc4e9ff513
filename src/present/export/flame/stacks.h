#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "analysis/host_role.h"
#include "analysis/rank_context.h"
#include "base/result.h"
#include "model/run.h"
#include "present/export/flame/flame.h"

namespace lockstep::flame {

/// A frame of a thread's stack.
struct Frame {
  NameId name;
  int64_t end_ns = 0;
  uint64_t id = 0;    ///< Another call is another id.
  uint32_t node = 0;  ///< For the visitor's use; 0 when the frame opens.
};
using Stack = std::vector<Frame>;

/// A CPU thread of a rank: its tracks by lane; null where it has none.
struct Thread {
  int64_t process_id = 0;
  int64_t thread_id = 0;
  NameId name;
  const model::Track* python = nullptr;
  const model::Track* operators = nullptr;
  const model::Track* runtime = nullptr;
  size_t runtime_idx = 0;  ///< Into RankTrace::tracks, where runtime is not null.
};
/// By process and thread.
std::vector<Thread> FindThreads(const model::RankTrace& trace);

/// The ranks to write, and for each the time that counts.
struct Chosen {
  struct Window {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
  };
  struct OneRank {
    size_t rank_index = 0;
    bool all_time = true;
    std::vector<Window> windows;  ///< Unless all_time: sorted, disjoint; the rank's own clock.
    bool Contains(int64_t time_ns) const;
  };
  std::vector<OneRank> ranks;
};
/// Errors: kInvalidArgument when ranks or steps were named and none is there.
Result<Chosen> Choose(const model::Run& run, const std::string& step_name, const Options& options);

/// Device events of a rank by the call that launched them.
struct Launched {
  uint32_t track = UINT32_MAX;  ///< Of the call; UINT32_MAX: none in the file.
  uint32_t row = UINT32_MAX;
  NameId name;
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
};
/// Sorted by (track, row, start).
std::vector<Launched> FindLaunched(const analysis::RankContext& context);

/// Walks a thread through time. `visit(Stack&, start_ns, end_ns)` gets every piece of time in which the stack is the
/// same and not empty, in order; `call(Stack&, row)` every runtime call, with the stack around it. With `open_calls`
/// runtime calls are frames themselves. Cost: O(events).
template <typename Visit, typename Call>
class StackWalk {
 public:
  StackWalk(const Chosen::OneRank& chosen, Visit visit, Call call)
      : chosen_(chosen), visit_(std::move(visit)), call_(std::move(call)) {}

  void Walk(const Thread& thread, analysis::HostRoles& roles, bool open_calls) {
    std::array<Cursor, 3> cursors = {Cursor(thread.python), Cursor(thread.operators), Cursor(thread.runtime)};
    for (;;) {
      Cursor* next = nullptr;
      for (Cursor& cursor : cursors) {
        if (!cursor.done() && (next == nullptr || cursor.Before(*next))) next = &cursor;
      }
      if (next == nullptr) break;
      const model::EventColumns& events = next->track->events;
      const size_t row = next->row++;
      const bool is_call = next->track->lane == model::Lane::kRuntime;
      if (!is_call && roles[events.name[row]] == analysis::HostRole::kCollective) continue;
      Advance(events.start_ns[row]);
      if (is_call) call_(stack_, row);
      if (!is_call || open_calls) Open(events.name[row], events.end_ns(row));
    }
    Advance(std::numeric_limits<int64_t>::max());
  }

 private:
  struct Cursor {
    explicit Cursor(const model::Track* of) : track(of) {}
    bool done() const { return track == nullptr || row >= track->events.size(); }
    // Earlier, else longer; of equals Python is outside and the call inside.
    bool Before(const Cursor& other) const {
      const int64_t start = track->events.start_ns[row];
      const int64_t other_start = other.track->events.start_ns[other.row];
      if (start != other_start) return start < other_start;
      return track->events.duration_ns[row] > other.track->events.duration_ns[other.row];
    }
    const model::Track* track;
    size_t row = 0;
  };

  void Open(NameId name, int64_t end_ns) {
    if (!stack_.empty()) end_ns = std::min(end_ns, stack_.back().end_ns);
    stack_.push_back({name, end_ns, ++last_id_, 0});
  }
  void Advance(int64_t to_ns) {
    while (!stack_.empty() && stack_.back().end_ns <= to_ns) {
      Report(stack_.back().end_ns);
      stack_.pop_back();
    }
    Report(to_ns);
  }
  void Report(int64_t to_ns) {
    if (to_ns <= now_ns_) return;
    if (!stack_.empty()) {
      if (chosen_.all_time) {
        visit_(stack_, now_ns_, to_ns);
      } else {
        while (window_ < chosen_.windows.size() && chosen_.windows[window_].end_ns <= now_ns_) ++window_;
        for (size_t w = window_; w < chosen_.windows.size() && chosen_.windows[w].start_ns < to_ns; ++w) {
          const int64_t from = std::max(now_ns_, chosen_.windows[w].start_ns);
          const int64_t until = std::min(to_ns, chosen_.windows[w].end_ns);
          if (from < until) visit_(stack_, from, until);
        }
      }
    }
    now_ns_ = to_ns;
  }

  const Chosen::OneRank& chosen_;
  Visit visit_;
  Call call_;
  Stack stack_;
  uint64_t last_id_ = 0;
  int64_t now_ns_ = std::numeric_limits<int64_t>::min();
  size_t window_ = 0;
};

}  // namespace lockstep::flame
