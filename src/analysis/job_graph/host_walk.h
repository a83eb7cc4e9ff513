#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "analysis/host_role.h"
#include "analysis/job_graph/device_side.h"

namespace lockstep::analysis {

/// Time of a host thread between two starts or ends of its ranges.
struct HostStretch {
  int64_t start_ns = 0;  ///< The thread's first stretch begins at INT64_MIN, its last ends at INT64_MAX.
  int64_t end_ns = 0;
  NameId label;           ///< Of the innermost range; empty outside of all.
  bool in_range = false;  ///< Inside any range but a step.
  bool in_data_loader = false;
  bool is_work =
      false;  ///< All of an operator or runtime call that has none inside, and that does not wait by its name.
};

/// The tracks of one host thread.
struct HostTracks {
  HostThread thread;
  std::vector<uint32_t> tracks;  ///< Lanes kOperators and kRuntime.
};

/// Calls visit(stretch) for all stretches of a thread, in order, without gaps; empty ones are left out. Ranges of CPU
/// backends' collectives are not the thread's own; a range that outlasts the one around it is cut.
template <typename Visit>
void WalkHostThread(const RankContext& context, const HostTracks& host, HostRoles* roles, Visit visit) {
  struct Open {
    int64_t start_ns;
    int64_t end_ns;
    NameId label;
    bool in_data_loader;
    bool may_wait;
  };
  std::vector<Open> stack;
  int64_t now_ns = std::numeric_limits<int64_t>::min();
  const auto reach = [&](int64_t time_ns) {
    if (time_ns <= now_ns) return;
    HostStretch stretch{now_ns, time_ns, NameId{}, false, false, false};
    if (!stack.empty()) {
      const Open& top = stack.back();
      stretch.label = top.label;
      stretch.in_range = true;
      stretch.in_data_loader = top.in_data_loader;
      stretch.is_work = !top.may_wait && top.start_ns == now_ns && top.end_ns == time_ns;
    }
    now_ns = time_ns;
    visit(stretch);
  };
  struct Cursor {
    const model::EventColumns* events;
    size_t row;
  };
  std::vector<Cursor> cursors;
  for (const uint32_t track : host.tracks) cursors.push_back({&context.trace().tracks[track].events, 0});
  for (;;) {
    Cursor* next = nullptr;
    for (Cursor& cursor : cursors) {
      if (cursor.row >= cursor.events->size()) continue;
      if (next == nullptr) {
        next = &cursor;
        continue;
      }
      const int64_t a = cursor.events->start_ns[cursor.row];
      const int64_t b = next->events->start_ns[next->row];
      if (a < b || (a == b && cursor.events->duration_ns[cursor.row] > next->events->duration_ns[next->row]))
        next = &cursor;
    }
    if (next == nullptr) break;
    const model::EventColumns& events = *next->events;
    const size_t row = next->row++;
    const int64_t start_ns = events.start_ns[row];
    if (context.cpu_cutoff_ns && start_ns >= *context.cpu_cutoff_ns) continue;
    const bool is_call = events.category[row] == model::Category::kRuntime;
    const HostRole role = is_call ? HostRole::kWork : (*roles)[events.name[row]];
    if (role == HostRole::kCollective || role == HostRole::kStep || events.duration_ns[row] == 0) continue;
    while (!stack.empty() && stack.back().end_ns <= start_ns) {
      reach(stack.back().end_ns);
      stack.pop_back();
    }
    reach(start_ns);
    Open open{start_ns, events.end_ns(row), events.name[row], role == HostRole::kDataLoader,
              role == HostRole::kCollectiveCall || events.category[row] == model::Category::kUserAnnotation};
    if (!stack.empty()) {
      open.end_ns = std::min(open.end_ns, stack.back().end_ns);
      open.in_data_loader = open.in_data_loader || stack.back().in_data_loader;
    }
    stack.push_back(open);
  }
  while (!stack.empty()) {
    reach(stack.back().end_ns);
    stack.pop_back();
  }
  reach(std::numeric_limits<int64_t>::max());
}

}  // namespace lockstep::analysis
