#pragma once

#include <signal.h>

#include <array>
#include <cstdint>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace lockstep::cli {

/// While this lives, the first of SIGINT, SIGTERM and SIGHUP ends a wait instead of this program; the second does what
/// it always does. One at a time.
class EndingSignals {
 public:
  static Result<EndingSignals> Catch();
  EndingSignals(EndingSignals&&) = default;
  ~EndingSignals();

  /// True: a signal came, within this time or before. Thread-safe.
  bool Wait(int64_t ns) const;

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  EndingSignals(UniqueFd read, UniqueFd write);

  UniqueFd read_;
  UniqueFd write_;
  std::array<struct sigaction, kSignals.size()> before_ = {};
};

}  // namespace lockstep::cli
