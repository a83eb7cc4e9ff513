#include "measure/rendezvous/hello.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::rendezvous {
namespace {

TEST(HelloTest, ComesBackAsItWent) {
  const auto bytes = ToBytes(Hello{.job = 0x1234567890abcdef, .world_size = 70'000, .rank = 69'999});
  const auto hello = ParseHello(bytes);
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->job, 0x1234567890abcdefu);
  EXPECT_EQ(hello->world_size, 70'000u);
  EXPECT_EQ(hello->rank, 69'999u);
}

TEST(HelloTest, StrangersAndOtherVersionsAreToldApart) {
  auto bytes = ToBytes(Hello{});
  bytes[8] = std::byte{9};
  EXPECT_EQ(ParseHello(bytes).error().code, ErrorCode::kUnsupported);
  bytes[0] = std::byte{'G'};
  EXPECT_EQ(ParseHello(bytes).error().code, ErrorCode::kCorruptData);
  EXPECT_FALSE(ParseHello(std::span(bytes).first(31)));
}

TEST(HelloTest, AnswersAreTheKnownOnesOnly) {
  auto bytes = ToBytes(Answer::kRankIsThere);
  EXPECT_EQ(*ParseAnswer(bytes), Answer::kRankIsThere);
  bytes[8] = std::byte{5};
  EXPECT_FALSE(ParseAnswer(bytes));
}

TEST(HelloTest, MessagesAreBounded) {
  EXPECT_EQ(*ParseLength(LengthBytes(kMostMessageBytes)), kMostMessageBytes);
  EXPECT_EQ(ParseLength(LengthBytes(kMostMessageBytes + 1)).error().code, ErrorCode::kLimitExceeded);
  EXPECT_FALSE(ParseLength({}));
}

}  // namespace
}  // namespace lockstep::rendezvous
