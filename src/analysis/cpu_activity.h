#pragma once

#include <cstdint>
#include <vector>

#include "analysis/activity.h"
#include "analysis/rank_context.h"

namespace lockstep::analysis {

/// A stretch of CPU time and what it is spent on.
struct CpuInterval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  Activity activity = Activity::kCompute;
};

/// What the CPU threads of a rank without device events did, for the breakdown of CPU-only jobs.
struct CpuActivity {
  /// Lists of intervals, each sorted by start; lists may overlap each other.
  std::vector<std::vector<CpuInterval>> lists;
  int64_t first_ns = 0;  ///< First start of any operator or annotation in scope.
  int64_t last_ns = 0;   ///< Last end of the same.
  bool any = false;      ///< False: no operator and no annotation in scope.
};

/// compute: time in which a thread's innermost operator is work. Annotations, ProfilerStep and data loader ranges do
/// not count as work by themselves, nor do calls that issue or await a collective. communication: ranges of a CPU
/// backend's collectives, which run beside the thread that issued them. Source: docs/metrics.md#breakdown. Cost:
/// O(events of operator lanes).
CpuActivity FindCpuActivity(const RankContext& context);

/// Cursor of MergeByStart over one list.
class CpuCursor {
 public:
  explicit CpuCursor(const std::vector<CpuInterval>& list) : list_(&list) {}
  bool done() const { return row_ >= list_->size(); }
  int64_t start() const { return (*list_)[row_].start_ns; }
  int64_t end() const { return (*list_)[row_].end_ns; }
  Activity activity() const { return (*list_)[row_].activity; }
  void Next() { ++row_; }

 private:
  const std::vector<CpuInterval>* list_;
  size_t row_ = 0;
};

std::vector<CpuCursor> MakeCursors(const CpuActivity& activity);

}  // namespace lockstep::analysis
