#include "base/http/event_stream.h"

#include <gtest/gtest.h>

namespace lockstep::http {
namespace {

TEST(EventStreamTest, OfOneKindOnlyTheNewestIsKept) {
  EventStream stream;
  const std::string large(EventStream::kQueuedBytes, 'x');
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(stream.PushLatest("view", large + std::to_string(i)));
  EXPECT_TRUE(stream.PushLatest("alerts", "a"));
  EXPECT_TRUE(stream.Push("first"));
  bool closed = true;
  const std::string taken = stream.Take(&closed);
  EXPECT_EQ(taken, "firsta" + large + "9");
  EXPECT_FALSE(closed);
  EXPECT_EQ(stream.Take(&closed), "");
}

TEST(EventStreamTest, WakesOnceForAllThatIsNotTaken) {
  EventStream stream;
  int wakes = 0;
  stream.OnChange([&] { ++wakes; });
  stream.PushLatest("view", "1");
  stream.PushLatest("view", "2");
  stream.Push("3");
  EXPECT_EQ(wakes, 1);
  bool closed = false;
  EXPECT_EQ(stream.Take(&closed), "32");
  stream.PushLatest("view", "4");
  EXPECT_EQ(wakes, 2);
}

TEST(EventStreamTest, WhoHasGoneTakesNothingMore) {
  EventStream stream;
  stream.PushLatest("view", "1");
  stream.Abandon();
  EXPECT_FALSE(stream.PushLatest("view", "2"));
  EventStream closed;
  closed.PushLatest("view", "1");
  closed.Close();
  EXPECT_FALSE(closed.PushLatest("view", "2"));
  bool is_closed = false;
  EXPECT_EQ(closed.Take(&is_closed), "1");
  EXPECT_TRUE(is_closed);
}

}  // namespace
}  // namespace lockstep::http
