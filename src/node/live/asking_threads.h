#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace lockstep::live {

/// At most so many threads, started when there is work, that do the work in the order in which it was added.
/// Thread-safe.
class AskingThreads {
 public:
  explicit AskingThreads(size_t most) : most_(most) {}
  /// Work that has not begun is dropped; waits for work that has.
  ~AskingThreads();
  AskingThreads(const AskingThreads&) = delete;
  AskingThreads& operator=(const AskingThreads&) = delete;

  /// Where no thread can be had at all, it is done before this returns.
  void Put(std::function<void()> work);

 private:
  void Run();

  const size_t most_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool ends_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  size_t busy_count_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::deque<std::function<void()>> waiting_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::live
