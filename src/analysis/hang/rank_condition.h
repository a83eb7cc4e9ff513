#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/hang/job_view.h"
#include "analysis/hang/stack_reading.h"

namespace lockstep::hang {

/// What logs, /proc and stacks show of one rank, beside its record.
struct RankCondition {
  MainThread main;
  bool gone = false;         ///< The process is known to have ended: it was found so, or its exit was logged.
  bool absent = false;       ///< Not found while the job ran; then `gone` is true, too.
  bool unreachable = false;  ///< Its node could not be asked.
  bool stopped = false;      ///< By SIGSTOP or a debugger.
  bool disk_wait = false;    ///< State D.
  bool zombie = false;
  bool raised = false;     ///< It ended, or is ending, by an exception.
  bool aborted = false;    ///< The library ended it (an uncaught C++ exception, its own watchdog): also a victim's end.
  bool peer_lost = false;  ///< Its failure is a lost connection or a time-out: caused by another rank.
  bool finished = false;   ///< Ended with status 0, or is shutting down.
  bool out_of_memory = false;
  bool device_error = false;
  bool size_complaint = false;  ///< Its library complains of another size than it expected.
  int32_t signal = 0;
  std::optional<int64_t> first_error_ns;
  const evidence::LogEvent* first_error = nullptr;  ///< The first of its log that is an error of its own.
  const evidence::LogEvent* peer_reset = nullptr;
  const evidence::LogEvent* peer_closed = nullptr;
  const evidence::LogEvent* timeout = nullptr;  ///< Watchdog's or transport's.
  bool Failed() const { return gone || zombie || raised || aborted; }
  bool ended_by_others = false;  ///< A launcher, a scheduler or a person ended it after another rank had failed.
  /// It failed by itself, not by the loss of a peer.
  bool FailedByItself() const {
    if (ended_by_others) return false;
    const bool told = gone || zombie || first_error != nullptr;  // A bare exception hook may have anything behind it.
    return (Failed() && told && !peer_lost && !size_complaint && !finished) || (signal != 0 && !aborted) ||
           out_of_memory;
  }
};

std::vector<RankCondition> ReadConditions(const JobView& view);

}  // namespace lockstep::hang
