#include "base/http/connection_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::http {
namespace {

using std::chrono::seconds;

class ConnectionTableTest : public testing::Test {
 protected:
  static ServerLimits Limits() {
    ServerLimits limits;
    limits.connection_count = 4;
    limits.connection_count_per_source = 2;
    limits.crowded_seconds = 2;
    return limits;
  }
  std::optional<ConnectionTable::Id> Enter(const std::string& source, int at_s = 0) {
    const auto id = table_.Enter(source, start_ + seconds(at_s));
    if (id) table_.Waiting(*id, start_ + seconds(at_s), [this, source] { displaced_.push_back(source); });
    return id;
  }

  const ConnectionTable::Clock::time_point start_ = ConnectionTable::Clock::now();
  ConnectionTable table_{Limits()};
  std::vector<std::string> displaced_;
};

TEST_F(ConnectionTableTest, OneSourceAndAllTogetherHaveALimit) {
  ASSERT_TRUE(Enter("a"));
  ASSERT_TRUE(Enter("a"));
  EXPECT_FALSE(Enter("a"));
  ASSERT_TRUE(Enter("b"));
  ASSERT_TRUE(Enter("b"));
  EXPECT_FALSE(Enter("c"));
  EXPECT_EQ(4U, table_.counts().open);
  EXPECT_EQ(2U, table_.counts().refused);
  EXPECT_TRUE(displaced_.empty());
}

TEST_F(ConnectionTableTest, WhoLeavesMakesRoom) {
  const auto id = Enter("a");
  ASSERT_TRUE(Enter("a"));
  table_.Leave(*id);
  EXPECT_TRUE(Enter("a"));
  EXPECT_EQ(2U, table_.counts().open);
}

TEST_F(ConnectionTableTest, WhoHasWaitedLongestOfItsSourceGivesWay) {
  Enter("b", 0);
  Enter("a", 1);
  Enter("a", 2);
  EXPECT_FALSE(Enter("a", 2)) << "nobody of this source has waited long enough";
  EXPECT_TRUE(Enter("a", 3));
  EXPECT_EQ(std::vector<std::string>{"a"}, displaced_);
  EXPECT_EQ(1U, table_.counts().displaced);
  EXPECT_EQ(3U, table_.counts().open);
}

TEST_F(ConnectionTableTest, WhenAllIsFullAnySourceGivesWay) {
  Enter("a", 0);
  Enter("b", 0);
  Enter("c", 0);
  Enter("d", 0);
  EXPECT_TRUE(Enter("e", 5));
  EXPECT_EQ(std::vector<std::string>{"a"}, displaced_);
}

TEST_F(ConnectionTableTest, WhoIsBeingAnsweredStays) {
  for (const char* source : {"a", "b", "c", "d"}) table_.Busy(*Enter(source));
  EXPECT_FALSE(Enter("e", 100));
  EXPECT_TRUE(displaced_.empty());
}

TEST_F(ConnectionTableTest, WaitingAgainBeginsAnew) {
  const auto first = Enter("a", 0);
  Enter("a", 1);
  table_.Busy(*first);
  table_.Waiting(*first, start_ + seconds(3), [this] { displaced_.emplace_back("first"); });
  EXPECT_TRUE(Enter("a", 4));
  EXPECT_EQ(std::vector<std::string>{"a"}, displaced_);
}

TEST_F(ConnectionTableTest, WhoWasDisplacedMayLeaveLater) {
  const auto first = Enter("a", 0);
  Enter("a", 0);
  ASSERT_TRUE(Enter("a", 9));
  table_.Busy(*first);
  table_.Leave(*first);
  EXPECT_EQ(2U, table_.counts().open);
}

}  // namespace
}  // namespace lockstep::http
