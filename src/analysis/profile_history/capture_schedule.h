#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace lockstep::profile_history {

/// How the job is, at a look.
enum class JobState : uint8_t {
  kMoving,
  kStill,   ///< Nothing has moved since the look before; that may be a slow step.
  kSilent,  ///< Silent for too long, stuck, or a node of it does not answer.
};

/// What to do at a look.
enum class ScheduleStep : uint8_t { kNothing, kStart, kSkipSilent, kSkipOverrun };

/// When captures of a job begin: each `period_ns` from the first on, one at a time. One that falls due while another
/// is under way, or while the job is silent, is left out, so that none pile up. Pure: time is handed in.
class CaptureSchedule {
 public:
  explicit CaptureSchedule(int64_t period_ns) : period_ns_(period_ns) {}

  ScheduleStep Look(int64_t now_ns, JobState state, bool is_capturing);

 private:
  const int64_t period_ns_;
  std::optional<int64_t> due_ns_;
};

}  // namespace lockstep::profile_history
