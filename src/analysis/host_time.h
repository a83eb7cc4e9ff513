#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis/host_role.h"
#include "analysis/track_merge.h"
#include "base/ids.h"
#include "model/event.h"

namespace lockstep::analysis {

/// A piece of a window in which one range is the innermost of a thread.
struct HostPiece {
  size_t window = 0;            ///< Index into the windows.
  NameId name;                  ///< Of the innermost range; empty = nothing is recorded there.
  bool in_data_loader = false;  ///< A data loader range is the innermost one or around it.
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

namespace internal {

struct OpenRange {
  int64_t end_ns = 0;
  NameId name;
  bool in_data_loader = false;
};

/// Time moves forward; whatever passes is given to the range on top of the stack.
template <typename Visit>
class PieceCutter {
 public:
  PieceCutter(const std::vector<Interval>& windows, const Visit& visit)
      : windows_(windows), visit_(visit), now_ns_(windows.front().start_ns) {}

  bool done() const { return now_ns_ >= windows_.back().end_ns; }

  /// Closes ranges that end before `to_ns` and moves on to it.
  void Advance(int64_t to_ns) {
    while (!stack_.empty() && stack_.back().end_ns <= to_ns) {
      Report(stack_.back().end_ns);
      stack_.pop_back();
    }
    Report(to_ns);
  }

  void Open(OpenRange range) {
    if (!stack_.empty()) {
      range.end_ns = std::min(range.end_ns, stack_.back().end_ns);
      range.in_data_loader = range.in_data_loader || stack_.back().in_data_loader;
    }
    stack_.push_back(range);
  }

 private:
  void Report(int64_t to_ns) {
    while (now_ns_ < to_ns && window_ < windows_.size()) {
      const Interval& window = windows_[window_];
      const int64_t from_ns = std::max(now_ns_, window.start_ns);
      const int64_t until_ns = std::min(to_ns, window.end_ns);
      if (from_ns < until_ns) {
        HostPiece piece;
        piece.window = window_;
        piece.start_ns = from_ns;
        piece.end_ns = until_ns;
        if (!stack_.empty()) {
          piece.name = stack_.back().name;
          piece.in_data_loader = stack_.back().in_data_loader;
        }
        visit_(piece);
      }
      now_ns_ = std::max(now_ns_, until_ns);
      if (window.end_ns > to_ns) break;
      ++window_;
    }
    now_ns_ = std::max(now_ns_, to_ns);
  }

  const std::vector<Interval>& windows_;
  const Visit& visit_;
  int64_t now_ns_;
  size_t window_ = 0;
  std::vector<OpenRange> stack_;
};

}  // namespace internal

/// Cuts windows of one CPU thread into pieces by innermost range and reports each. Ranges of CPU backends' collectives
/// do not nest and are left out; a range that outlives the one around it is cut at its end. In: windows sorted and
/// disjoint. Cost: O(events up to the end of the last window).
template <typename Visit>
void VisitHostTime(const model::EventColumns& events, HostRoles& roles, const std::vector<Interval>& windows,
                   const Visit& visit) {
  if (windows.empty()) return;
  internal::PieceCutter<Visit> cutter(windows, visit);
  for (size_t i = 0; i < events.size() && !cutter.done(); ++i) {
    const int64_t start_ns = events.start_ns[i];
    if (start_ns >= windows.back().end_ns) break;
    const HostRole role = roles[events.name[i]];
    if (role == HostRole::kCollective) continue;
    cutter.Advance(start_ns);
    cutter.Open({events.end_ns(i), events.name[i], role == HostRole::kDataLoader});
  }
  cutter.Advance(windows.back().end_ns);
}

}  // namespace lockstep::analysis
