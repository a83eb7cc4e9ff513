#include "base/timed_socket_io.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "base/unique_fd.h"

namespace lockstep {
namespace {

std::array<UniqueFd, 2> Pair() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

TEST(TimedSocketIoTest, BytesArriveAndTheEndIsNone) {
  auto [here, there] = Pair();
  const int64_t until_ns = SteadyNow() + 60 * kSecondNs;
  ASSERT_EQ(SendWithin(here.get(), "abc", until_ns), 0);
  std::array<char, 8> bytes = {};
  size_t received = 0;
  ASSERT_EQ(ReceiveWithin(there.get(), bytes.data(), bytes.size(), &received, until_ns), 0);
  EXPECT_EQ(std::string_view(bytes.data(), received), "abc");
  here = UniqueFd();
  ASSERT_EQ(ReceiveWithin(there.get(), bytes.data(), bytes.size(), &received, until_ns), 0);
  EXPECT_EQ(received, 0u);
}

TEST(TimedSocketIoTest, TheMomentAndAStopEndTheWaiting) {
  const auto [here, there] = Pair();
  const auto [stop, stopper] = Pair();
  std::array<char, 8> bytes = {};
  size_t received = 0;
  EXPECT_EQ(ReceiveWithin(here.get(), bytes.data(), bytes.size(), &received, SteadyNow() + kMillisecondNs), ETIME);
  const int64_t until_ns = SteadyNow() + 60 * kSecondNs;
  ASSERT_EQ(SendWithin(stopper.get(), "x", until_ns), 0);
  EXPECT_EQ(ReceiveWithin(here.get(), bytes.data(), bytes.size(), &received, until_ns, stop.get()), ECANCELED);
}

TEST(TimedSocketIoTest, NothingIsSentAfterTheMoment) {
  const auto [here, there] = Pair();
  EXPECT_EQ(SendWithin(here.get(), "abc", SteadyNow() - 1), ETIME);
}

}  // namespace
}  // namespace lockstep
