#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::inspect {

/// What a worker leaves of its time, to say what it waited for in vain.
inline constexpr int64_t kReportMarginNs = 300'000'000;

/// What a forked worker did.
struct WorkerOutcome {
  std::vector<std::string> messages;  ///< Whole ones, in order; what it sent before its end is never lost.
  bool finished = false;              ///< It ended by itself, without an error.
  bool out_of_time = false;
  int signal = 0;     ///< That ended it; 0 = none.
  std::string error;  ///< Why there was none at all, "" = there was one.
};

/// Sends one message to the parent; false: the parent no longer reads.
class WorkerPipe {
 public:
  explicit WorkerPipe(int fd) : fd_(fd) {}
  bool Send(std::string_view message) const;

 private:
  int fd_;
};

/// Runs `work` in a forked copy of this process and collects what it sends, until it ends, `deadline_monotonic_ns` has
/// come (then it is killed) or it has sent `limit_bytes`. What may hang or crash belongs in there: a debugging library
/// that reads files of a job, a read of a process's memory that does not return. `work` runs on the only thread of its
/// process, with every other descriptor closed, dies with the thread that called this, and must not wait for locks that
/// other threads may have held. Thread-safe.
WorkerOutcome RunWorker(const std::function<void(const WorkerPipe&)>& work, int64_t deadline_monotonic_ns,
                        size_t limit_bytes = size_t{256} << 20);

}  // namespace lockstep::inspect
