#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "node/inspect/proc_files.h"

namespace lockstep::inspect {

/// What target and test share.
struct SharedCounters {
  std::atomic<uint64_t> main{0};
  std::atomic<uint64_t> other{0};
  std::atomic<bool> ready{false};
};

/// A real child process to look at. It ends with this.
class TargetProcess {
 public:
  /// `work` runs in the child, and sets `ready` once it is where the test wants it.
  explicit TargetProcess(const std::function<void(SharedCounters*)>& work)
      : counters_(new (::mmap(nullptr, sizeof(SharedCounters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                              0)) SharedCounters) {
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      work(counters_);
      ::_exit(0);
    }
    WaitUntil([&] { return counters_->ready.load(); });
  }
  TargetProcess(const TargetProcess&) = delete;
  TargetProcess& operator=(const TargetProcess&) = delete;
  ~TargetProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::munmap(counters_, sizeof(SharedCounters));
  }

  pid_t pid() const { return pid_; }
  SharedCounters& counters() { return *counters_; }
  /// Its main thread's letter in /proc.
  char State() const { return StateOf(pid_); }
  char StateOf(pid_t tid) const {
    const auto stat = ParseProcStat(ReadProcFile(pid_, fmt::format("task/{}/stat", tid)).value_or(""));
    return stat ? stat->state : 'X';
  }
  std::vector<pid_t> Threads() const {
    std::vector<pid_t> tids;
    for (const int64_t tid : ListNumbers(fmt::format("/proc/{}/task", pid_), 1000))
      tids.push_back(static_cast<pid_t>(tid));
    return tids;
  }

  /// Waits for a condition, half a minute at most; false: it never held.
  static bool WaitUntil(const std::function<bool()>& holds) {
    for (int i = 0; i < 30'000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  /// Whether both counters go on from where they are now.
  bool GoesOn() {
    const uint64_t main = counters_->main;
    const uint64_t other = counters_->other;
    return WaitUntil([&] { return counters_->main > main && counters_->other > other; });
  }

 private:
  SharedCounters* counters_;
  pid_t pid_ = -1;
};

}  // namespace lockstep::inspect
