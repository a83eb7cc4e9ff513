#include "node/live/asking_threads.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace lockstep::live {

AskingThreads::~AskingThreads() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  threads_.clear();  // Joined.
}

void AskingThreads::Put(std::function<void()> work) {
  {
    const MutexLock lock(mutex_);
    waiting_.push_back(std::move(work));
    if (busy_count_ + waiting_.size() > threads_.size() && threads_.size() < std::max<size_t>(most_, 1)) {
      try {
        threads_.emplace_back([this] { Run(); });
      } catch (const std::system_error&) {
        // No more threads to be had (RLIMIT_NPROC, a container's pids limit): those that there are do the work.
      }
    }
    if (!threads_.empty()) {
      changed_.notify_one();
      return;
    }
    work = std::move(waiting_.back());
    waiting_.pop_back();
  }
  work();
}

void AskingThreads::Run() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this]() LOCKSTEP_REQUIRES(mutex_) { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    const std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    ++busy_count_;
    lock.unlock();
    work();
    lock.lock();
    --busy_count_;
  }
}

}  // namespace lockstep::live
