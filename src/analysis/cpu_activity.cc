#include "analysis/cpu_activity.h"

#include <algorithm>

#include "analysis/host_role.h"

namespace lockstep::analysis {
namespace {

/// An open range of a thread, and whether time in it counts as work unless a range inside says otherwise.
struct OpenWorkRange {
  int64_t end_ns = 0;
  bool is_work = false;
};

/// Collects the stretches in which the innermost range of one thread is work.
class WorkSweep {
 public:
  explicit WorkSweep(std::vector<CpuInterval>* out) : out_(out) {}

  bool in_work() const { return !open_.empty() && open_.back().is_work; }

  void Open(int64_t start_ns, int64_t end_ns, bool is_work) {
    AdvanceTo(start_ns);
    open_.push_back({end_ns, is_work});
  }
  /// Closes what ends by `to_ns` and moves there.
  void AdvanceTo(int64_t to_ns) {
    while (!open_.empty() && open_.back().end_ns <= to_ns) {
      Emit(open_.back().end_ns);
      open_.pop_back();
    }
    Emit(to_ns);
  }
  void Finish() {
    while (!open_.empty()) AdvanceTo(open_.back().end_ns);
  }

 private:
  void Emit(int64_t to_ns) {
    if (to_ns <= now_ns_) return;
    if (in_work()) {
      if (!out_->empty() && out_->back().end_ns == now_ns_) {
        out_->back().end_ns = to_ns;
      } else {
        out_->push_back({now_ns_, to_ns, Activity::kCompute});
      }
    }
    now_ns_ = to_ns;
  }

  std::vector<CpuInterval>* out_;
  std::vector<OpenWorkRange> open_;
  int64_t now_ns_ = INT64_MIN;
};

}  // namespace

CpuActivity FindCpuActivity(const RankContext& context) {
  CpuActivity activity;
  HostRoles roles(context.names());
  for (const model::Track& track : context.trace().tracks) {
    if (track.lane != model::Lane::kOperators) continue;
    const model::EventColumns& events = track.events;
    std::vector<CpuInterval> work;
    std::vector<CpuInterval> collectives;
    WorkSweep sweep(&work);
    for (size_t row = 0; row < events.size(); ++row) {
      const int64_t start_ns = events.start_ns[row];
      const int64_t end_ns = events.end_ns(row);
      if (context.cpu_cutoff_ns && start_ns >= *context.cpu_cutoff_ns) break;
      activity.first_ns = activity.any ? std::min(activity.first_ns, start_ns) : start_ns;
      activity.last_ns = activity.any ? std::max(activity.last_ns, end_ns) : end_ns;
      activity.any = true;
      const HostRole role = roles[events.name[row]];
      if (role == HostRole::kCollective) {
        // It goes on while its thread does other things, so it neither is nor hides work of the thread.
        collectives.push_back({start_ns, end_ns, Activity::kCommunication});
        continue;
      }
      sweep.AdvanceTo(start_ns);
      const bool inherits =
          events.category[row] != model::Category::kCpuOp || role == HostRole::kStep || role == HostRole::kDataLoader;
      const bool is_work = inherits ? sweep.in_work() : role == HostRole::kWork;
      sweep.Open(start_ns, end_ns, is_work);
    }
    sweep.Finish();
    if (!work.empty()) activity.lists.push_back(std::move(work));
    if (!collectives.empty()) activity.lists.push_back(std::move(collectives));
  }
  return activity;
}

std::vector<CpuCursor> MakeCursors(const CpuActivity& activity) {
  std::vector<CpuCursor> cursors;
  cursors.reserve(activity.lists.size());
  for (const auto& list : activity.lists) cursors.emplace_back(list);
  return cursors;
}

}  // namespace lockstep::analysis
