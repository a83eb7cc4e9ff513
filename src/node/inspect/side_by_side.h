#pragma once

#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::inspect {

/// Work that is done at the same time, and has been done when this ends. Each piece may start processes of its own
/// (RunWorker). One piece after the other where sanitizers are on: their allocator, unlike the C library's, lets a fork
/// copy a lock that another thread holds just then, for which the child would wait until its deadline.
class SideBySide {
 public:
  void Start(std::function<void()> work) {
#ifdef LOCKSTEP_SANITIZED
    work();
#else
    threads_.emplace_back(std::move(work));
#endif
  }

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace lockstep::inspect
