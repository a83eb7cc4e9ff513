#include "node/control/client/relay.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "node/control/client/testing/patience.h"
#include "node/control/client/testing/read_all.h"

namespace lockstep::control {
namespace {

using testing::kLong;
using testing::ReadAll;

std::pair<UniqueFd, UniqueFd> SocketPair() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// Reading end, writing end.
std::pair<UniqueFd, UniqueFd> Pipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void WriteAll(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t now = ::write(fd, text.data() + at, text.size() - at);
    if (now <= 0) return;
    at += static_cast<size_t>(now);
  }
}

std::string Noise(size_t size) {
  std::string text(size, '\0');
  uint32_t state = 7;
  for (char& c : text) c = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24U);
  return text;
}

class RelayTest : public ::testing::Test {
 protected:
  RelayTest() { ::signal(SIGPIPE, SIG_IGN); }
};

TEST_F(RelayTest, BytesGoUnchangedBothWaysThroughPipes) {
  auto [input, user_in] = Pipe();
  auto [user_out, output] = Pipe();
  auto [socket, daemon] = SocketPair();
  const std::string question = Noise(3'000'000);
  const std::string answer = Noise(5'000'001);
  std::jthread asking([&, fd = std::move(user_in)] { WriteAll(fd.get(), question); });
  std::string heard;
  // The daemon answers before it has heard all, and closes when the question's end was passed on.
  std::jthread answering([&, fd = std::move(daemon)] {
    const std::jthread talking([&] { WriteAll(fd.get(), answer); });
    heard = ReadAll(fd.get());
  });
  std::string got;
  std::jthread reading([&, fd = std::move(user_out)] { got = ReadAll(fd.get()); });
  EXPECT_TRUE(Relay(input.get(), output.get(), socket.get(), kLong));
  output = UniqueFd();
  asking.join();
  answering.join();
  reading.join();
  EXPECT_EQ(heard, question);
  EXPECT_EQ(got, answer);
}

TEST_F(RelayTest, ItEndsWhenTheDaemonCloses) {
  auto [input, user_in] = Pipe();  // Stays open: nobody says more, and nobody needs to.
  auto [user_out, output] = Pipe();
  auto [socket, daemon] = SocketPair();
  WriteAll(daemon.get(), "bye");
  daemon = UniqueFd();
  EXPECT_TRUE(Relay(input.get(), output.get(), socket.get(), kLong));
  output = UniqueFd();
  EXPECT_EQ(ReadAll(user_out.get()), "bye");
}

TEST_F(RelayTest, ItEndsWhenTheReaderHasGone) {
  for (const bool is_pipe : {true, false}) {
    auto [user, both] = SocketPair();
    auto [user_out, output] = Pipe();
    auto [input, user_in] = Pipe();
    auto [socket, daemon] = SocketPair();
    WriteAll(daemon.get(), "late");
    user = UniqueFd();
    user_out = UniqueFd();
    EXPECT_TRUE(is_pipe ? Relay(input.get(), output.get(), socket.get(), kLong)
                        : Relay(both.get(), both.get(), socket.get(), kLong));
  }
}

TEST_F(RelayTest, AClientThatHasGoneEndsItThoughTheDaemonStays) {
  auto [user, both] = SocketPair();
  auto [socket, daemon] = SocketPair();
  WriteAll(user.get(), "question");
  user = UniqueFd();
  EXPECT_TRUE(Relay(both.get(), both.get(), socket.get(), kLong));
  socket = UniqueFd();
  EXPECT_EQ(ReadAll(daemon.get()), "question");
}

TEST_F(RelayTest, ASilentDaemonIsNotWaitedForWhenNobodyAsks) {
  auto [input, user_in] = Pipe();
  auto [user_out, output] = Pipe();
  auto [socket, daemon] = SocketPair();
  user_in = UniqueFd();
  EXPECT_TRUE(Relay(input.get(), output.get(), socket.get(), 20'000'000));
}

TEST_F(RelayTest, ADaemonThatStopsReadingMayStillAnswer) {
  auto [user, both] = SocketPair();
  auto [socket, daemon] = SocketPair();
  ::shutdown(daemon.get(), SHUT_RD);
  std::jthread talking([&user = user] { WriteAll(user.get(), std::string(10, 'x')); });
  talking.join();
  WriteAll(daemon.get(), "413");
  daemon = UniqueFd();
  EXPECT_TRUE(Relay(both.get(), both.get(), socket.get(), kLong));
  both = UniqueFd();
  EXPECT_EQ(ReadAll(user.get()), "413");
}

TEST(ConnectUnixTest, NobodyThereIsNotFound) {
  const Result<UniqueFd> none = ConnectUnix("/nowhere/s.sock");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, ::testing::HasSubstr("no lockstepd answers at /nowhere/s.sock"));
  EXPECT_EQ(ConnectUnix(std::string(300, 'a')).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ConnectUnix("").error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep::control
