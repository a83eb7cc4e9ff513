#pragma once

#include <mutex>

// What clang's thread safety analysis (-Wthread-safety) reads; nothing for other compilers.
#ifdef __clang__
#define LOCKSTEP_THREAD_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define LOCKSTEP_THREAD_ATTRIBUTE(...)
#endif

/// A member that is read and written with the mutex held only; the second: what a pointer member points at.
#define LOCKSTEP_GUARDED_BY(mutex) LOCKSTEP_THREAD_ATTRIBUTE(guarded_by(mutex))
#define LOCKSTEP_PT_GUARDED_BY(mutex) LOCKSTEP_THREAD_ATTRIBUTE(pt_guarded_by(mutex))
/// A function, or the predicate of a wait, that is called with the mutexes held; the second: with none of them held.
#define LOCKSTEP_REQUIRES(...) LOCKSTEP_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define LOCKSTEP_EXCLUDES(...) LOCKSTEP_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
/// A function that returns with the mutexes held, or held before and free then.
#define LOCKSTEP_ACQUIRE(...) LOCKSTEP_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define LOCKSTEP_RELEASE(...) LOCKSTEP_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
/// A function that the analysis cannot follow; a comment says why.
#define LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS LOCKSTEP_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace lockstep {

/// std::mutex, known to the analysis. Conditions are std::condition_variable_any, which waits with a MutexLock; a
/// predicate states what it reads: `changed_.wait(lock, [this]() LOCKSTEP_REQUIRES(mutex_) { return ends_; })`.
class LOCKSTEP_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() LOCKSTEP_ACQUIRE() { mutex_.lock(); }
  void unlock() LOCKSTEP_RELEASE() { mutex_.unlock(); }
  bool try_lock() LOCKSTEP_THREAD_ATTRIBUTE(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

/// Holds a mutex as long as it lives, except between unlock() and lock().
class LOCKSTEP_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) LOCKSTEP_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  /// Of a mutex that try_lock() has got.
  MutexLock(Mutex& mutex, std::adopt_lock_t /*held*/) LOCKSTEP_REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() LOCKSTEP_RELEASE() {
    if (is_held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() LOCKSTEP_ACQUIRE() {
    mutex_.lock();
    is_held_ = true;
  }
  void unlock() LOCKSTEP_RELEASE() {
    is_held_ = false;
    mutex_.unlock();
  }

 private:
  Mutex& mutex_;
  bool is_held_ = true;
};

}  // namespace lockstep
