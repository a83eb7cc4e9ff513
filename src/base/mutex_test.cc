#include "base/mutex.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <thread>

namespace lockstep {
namespace {

// Asked from another thread: a thread may not try a mutex that it holds.
bool IsFree(Mutex& mutex) {
  bool is_free = false;
  std::thread([&] {
    if (!mutex.try_lock()) return;
    is_free = true;
    mutex.unlock();
  }).join();
  return is_free;
}

TEST(MutexTest, IsHeldAsLongAsItsLockLives) {
  Mutex mutex;
  {
    const MutexLock lock(mutex);
    EXPECT_FALSE(IsFree(mutex));
  }
  EXPECT_TRUE(IsFree(mutex));
}

TEST(MutexTest, IsFreeWhileItsLockHasLetItGo) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    lock.unlock();
    EXPECT_TRUE(IsFree(mutex));
    lock.lock();
    EXPECT_FALSE(IsFree(mutex));
    lock.unlock();
  }
  EXPECT_TRUE(IsFree(mutex));
}

TEST(MutexTest, WhatWasTriedIsFreedByTheLockThatTakesItOver) {
  Mutex mutex;
  if (!mutex.try_lock()) FAIL() << "nobody holds it";
  {
    const MutexLock lock(mutex, std::adopt_lock);
    EXPECT_FALSE(IsFree(mutex));
  }
  EXPECT_TRUE(IsFree(mutex));
}

struct Turns {
  Mutex mutex;
  std::condition_variable_any changed;
  int turn LOCKSTEP_GUARDED_BY(mutex) = 0;

  // Takes the turns `first`, `first` + 2, ... below `end`.
  void Take(int first, int end) {
    for (int own = first; own < end; own += 2) {
      MutexLock lock(mutex);
      changed.wait(lock, [&]() LOCKSTEP_REQUIRES(mutex) { return turn == own; });
      ++turn;
      changed.notify_all();
    }
  }
};

TEST(MutexTest, ConditionsWaitWithItsLock) {
  Turns turns;
  std::thread other([&] { turns.Take(1, 1000); });
  turns.Take(0, 1000);
  other.join();
  const MutexLock lock(turns.mutex);
  EXPECT_EQ(turns.turn, 1000);
}

}  // namespace
}  // namespace lockstep
