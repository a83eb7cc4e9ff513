#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/nanoseconds.h"
#include "base/result.h"
#include "node/live/job_view.h"
#include "present/top/screen.h"

namespace lockstep::top {

struct SessionOptions {
  int64_t interval_ns = kSecondNs;
  bool colour = true;
  bool unicode = true;
  /// The next look; called by one thread at a time, may take long.
  std::function<live::View()> look;
  /// Looks at a process closely; called by a thread of its own, may take long. Lines for the reader.
  std::function<std::vector<std::string>(const RankTarget& target)> stacks;
  /// The same of a trace of that rank, or of all ranks of its job.
  std::function<std::vector<std::string>(const RankTarget& target, bool whole_job)> capture;
};

struct SessionResult {
  live::View last;
  /// A look, an inspection or a capture is still under way and uses what `look`, `stacks` and `capture` use: the caller
  /// ends the process without taking that apart (_exit).
  bool must_leave = false;
  int signal = 0;  ///< That ended it; the caller does what it wants.
};

/// Shows `first` and what comes after it on the terminal until the user leaves. The terminal is as before when this
/// returns or throws. Errors: Terminal::Open's.
Result<SessionResult> RunSession(const SessionOptions& options, live::View first);

}  // namespace lockstep::top
