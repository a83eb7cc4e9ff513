#include "control/client/tunnel_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace lockstep::control {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kLong = 20'000'000'000;

std::unique_ptr<TunnelProcess> Shell(const std::string& script) {
  Result<std::unique_ptr<TunnelProcess>> tunnel = TunnelProcess::Spawn({"sh", "-c", script});
  EXPECT_TRUE(tunnel) << tunnel.error().message;
  return std::move(*tunnel);
}

std::string ReadAll(int fd) {
  std::string text;
  char window[256];
  for (ssize_t got = 0; (got = ::read(fd, window, sizeof(window))) > 0;) text.append(window, static_cast<size_t>(got));
  return text;
}

TEST(TunnelProcessTest, BytesGoBothWays) {
  const auto tunnel = Shell("cat");
  const UniqueFd socket(tunnel->TakeSocket());
  ASSERT_EQ(::write(socket.get(), "a\0b\n", 4), 4);
  ::shutdown(socket.get(), SHUT_WR);
  EXPECT_EQ(ReadAll(socket.get()), std::string("a\0b\n", 4));
}

TEST(TunnelProcessTest, WhatItSaidLastIsToldWithItsStatus) {
  const auto tunnel =
      Shell("echo banner >&2; echo one >&2; echo two >&2; printf '\\nssh: no route\\n\\n' >&2; exit 255");
  const std::string text = tunnel->Describe(kLong);
  EXPECT_THAT(text, HasSubstr("ended with status 255: one; two; ssh: no route"));
  EXPECT_THAT(text, Not(HasSubstr("banner;")));
  EXPECT_TRUE(tunnel->ended());
}

TEST(TunnelProcessTest, ASignalIsCalledOne) {
  const auto tunnel = Shell("kill -9 $$");
  EXPECT_THAT(tunnel->Describe(kLong), HasSubstr("was ended by signal 9"));
}

TEST(TunnelProcessTest, EndlessWordsAreBoundedAndDoNotBlockIt) {
  const auto tunnel =
      Shell("i=0; while [ $i -lt 20000 ]; do echo xxxxxxxxxxxxxxxxxxxxxxxx >&2; i=$((i+1)); done; exit 3");
  EXPECT_THAT(tunnel->Describe(kLong), HasSubstr("ended with status 3"));
  EXPECT_LE(tunnel->errors().size(), 4096U);
}

TEST(TunnelProcessTest, ItsWholeGroupEndsWithIt) {
  auto tunnel = Shell("trap '' TERM HUP; sleep 1000 & echo $$ $!; wait; sleep 1000");
  const UniqueFd socket(tunnel->TakeSocket());
  char window[64] = {};
  ASSERT_GT(::read(socket.get(), window, sizeof(window) - 1), 0);
  int leader = 0;
  int sleeper = 0;
  ASSERT_EQ(std::sscanf(window, "%d %d", &leader, &sleeper), 2);
  tunnel.reset();
  EXPECT_EQ(::kill(leader, 0), -1);
  // The sleeper is nobody's child now; whoever reaps it does so soon, or it stays a zombie that holds no socket.
  EXPECT_EQ(ReadAll(socket.get()), "");
}

TEST(TunnelProcessTest, AProgramThatIsNotThereIsNotFound) {
  const auto tunnel = TunnelProcess::Spawn({"no-such-program-as-this"});
  ASSERT_FALSE(tunnel);
  EXPECT_EQ(tunnel.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(tunnel.error().message, HasSubstr("no-such-program-as-this"));
}

}  // namespace
}  // namespace lockstep::control
