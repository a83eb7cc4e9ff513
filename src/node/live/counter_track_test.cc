#include "node/live/counter_track.h"

#include <gtest/gtest.h>

#include "base/nanoseconds.h"

namespace lockstep::live {
namespace {

using Track = CounterTrack<2>;

/// The second counter grows by one a second for `slow_s`, and by ten a second from then on.
void Fill(Track* track, int64_t until_s, int64_t slow_s, int64_t window_s) {
  for (int64_t s = 0; s <= until_s; ++s) {
    const double value = static_cast<double>(s <= slow_s ? s : slow_s + 10 * (s - slow_s));
    track->Add(s * kSecondNs, {static_cast<double>(s), value}, window_s * kSecondNs);
  }
}

TEST(CounterTrackTest, ALongWindowForgetsWhatIsOlderThanIt) {
  for (const int64_t window_s : {10, 100, 300, 3600}) {
    Track track;
    Fill(&track, 4 * window_s, 2 * window_s, window_s);
    EXPECT_DOUBLE_EQ(*track.PerSecond(1), 10) << window_s;
    ASSERT_NE(track.base(), nullptr);
    const int64_t age_ns = track.newest().taken_ns - track.base()->taken_ns;
    EXPECT_GE(age_ns, window_s * kSecondNs);
    EXPECT_LE(age_ns, window_s * kSecondNs + window_s * kSecondNs / 30 + 2 * kSecondNs);
    EXPECT_LE(track.size(), 128U);
  }
}

TEST(CounterTrackTest, TheLookBeforeTheNewestIsKept) {
  Track track;
  Fill(&track, 500, 0, 300);
  EXPECT_EQ(track.newest().taken_ns - track.previous()->taken_ns, kSecondNs);
}

TEST(CounterTrackTest, WhatHappensRarelyIsComparedBeyondTheWindow) {
  Track track;
  track.Add(0, {1.0, 0.0}, kSecondNs);
  for (int64_t s = 1; s < 1000; ++s) track.Add(s * kSecondNs, {2.0, 0.0}, kSecondNs);
  EXPECT_EQ(track.Growth(0), 1.0);
  EXPECT_LE(track.size(), 128U);
  track.Add(1000 * kSecondNs, {3.0, 0.0}, kSecondNs);
  EXPECT_EQ(track.Growth(0), 1.0);  // From before its last change.
}

}  // namespace
}  // namespace lockstep::live
