#include "present/live_site/audience.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lockstep::live_site {
namespace {

TEST(AudienceTest, WhatWasSoBeforeIsNotSaidAfterwards) {
  // Both write down what is so and tell it; who listens last hears what is so last.
  for (int round = 0; round < 2000; ++round) {
    Audience audience;
    std::atomic<int> now = 0;
    const auto tell = [&] {
      ++now;
      audience.Say("count", [&] { return std::to_string(now.load()); });
    };
    std::thread other(tell);
    tell();
    other.join();
    bool closed = false;
    ASSERT_EQ(audience.Join()->Take(&closed), "event: count\ndata: 2\n\n") << round;
  }
}

TEST(AudienceTest, WhoHasLookedIsHeardBeforeTheNextLooks) {
  Audience audience;
  std::atomic<bool> comes = false;
  std::atomic<bool> has_looked = false;
  std::thread later([&] {
    while (!comes) std::this_thread::yield();
    audience.Say("state", [&] { return has_looked = true, std::string("new"); });
  });
  audience.Say("state", [&] {
    comes = true;
    for (int turn = 0; turn < 1000; ++turn) std::this_thread::yield();
    EXPECT_FALSE(has_looked);
    return std::string("old");
  });
  later.join();
  bool closed = false;
  EXPECT_EQ(audience.Join()->Take(&closed), "event: state\ndata: new\n\n");
}

}  // namespace
}  // namespace lockstep::live_site
