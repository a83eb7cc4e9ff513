#include "analysis/profile_history/capture_schedule.h"

namespace lockstep::profile_history {

ScheduleStep CaptureSchedule::Look(int64_t now_ns, JobState state, bool is_capturing) {
  if (!due_ns_) due_ns_ = now_ns;
  if (now_ns < *due_ns_) return ScheduleStep::kNothing;
  const int64_t late_ns = now_ns - *due_ns_;
  const bool waits = !is_capturing && state == JobState::kStill && late_ns < period_ns_;
  if (waits) return ScheduleStep::kNothing;  // It may only be slow: the next movement starts the capture.
  *due_ns_ += (late_ns / period_ns_ + 1) * period_ns_;
  if (is_capturing) return ScheduleStep::kSkipOverrun;
  return state == JobState::kMoving ? ScheduleStep::kStart : ScheduleStep::kSkipSilent;
}

}  // namespace lockstep::profile_history
