#include "node/control/client/fan_out.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "node/control/client/testing/patience.h"

namespace lockstep::control {
namespace {

using testing::kLong;

TEST(FanOutTest, ResultsAreInOrderWhoeverIsFirst) {
  const auto results = FanOut<int>(100, 8, kLong, [](size_t i, int64_t) -> Result<int> {
    if (i % 7 == 0) std::this_thread::yield();
    if (i == 13) return Error{ErrorCode::kNotFound, "gone"};
    return static_cast<int>(i);
  });
  ASSERT_EQ(results.size(), 100U);
  for (size_t i = 0; i < results.size(); ++i) {
    if (i == 13) {
      ASSERT_FALSE(results[i]);
      EXPECT_EQ(results[i].error().code, ErrorCode::kNotFound);
    } else {
      ASSERT_TRUE(results[i]);
      EXPECT_EQ(*results[i], static_cast<int>(i));
    }
  }
}

TEST(FanOutTest, NeverMoreThanAllowedAtATime) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  const auto results = FanOut<void>(64, 3, kLong, [&](size_t, int64_t) -> Status {
    const int now = ++running;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::yield();
    --running;
    return {};
  });
  EXPECT_EQ(results.size(), 64U);
  EXPECT_LE(most, 3);
}

TEST(FanOutTest, ADeadNodeDoesNotHoldUpTheRest) {
  std::mutex mutex;
  std::condition_variable changed;
  size_t done = 0;
  // The first waits until all others are done: with two threads this ends only when they get past it.
  const auto results = FanOut<void>(20, 2, kLong, [&](size_t i, int64_t) -> Status {
    std::unique_lock lock(mutex);
    if (i == 0) {
      changed.wait(lock, [&] { return done == 19; });
    } else {
      ++done;
      changed.notify_all();
    }
    return {};
  });
  for (const auto& result : results) EXPECT_TRUE(result);
}

TEST(FanOutTest, WhoseTurnComesTooLateIsNotAsked) {
  const auto results = FanOut<int>(3, 1, 0, [](size_t, int64_t) -> Result<int> { return 1; });
  for (const auto& result : results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
  }
}

TEST(FanOutTest, NothingToDoIsDoneAtOnce) {
  EXPECT_TRUE(FanOut<int>(0, 8, kLong, [](size_t, int64_t) -> Result<int> { return 1; }).empty());
}

}  // namespace
}  // namespace lockstep::control
