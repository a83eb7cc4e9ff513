#include "node/control/client/tunnel_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "node/control/client/testing/patience.h"
#include "node/control/client/testing/read_all.h"

namespace lockstep::control {
namespace {

using ::testing::HasSubstr;
using testing::kLong;
using ::testing::Not;
using testing::ReadAll;

struct Tunnel {
  std::unique_ptr<TunnelProcess> process;
  UniqueFd socket;  ///< The other end.
};

Tunnel Shell(const std::string& script) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd lent(ends[1]);
  Result<std::unique_ptr<TunnelProcess>> process = TunnelProcess::Spawn({"sh", "-c", script}, lent.get());
  EXPECT_TRUE(process) << process.error().message;
  return {std::move(*process), UniqueFd(ends[0])};
}

TEST(TunnelProcessTest, BytesGoBothWays) {
  const Tunnel tunnel = Shell("cat");
  ASSERT_EQ(::write(tunnel.socket.get(), "a\0b\n", 4), 4);
  ::shutdown(tunnel.socket.get(), SHUT_WR);
  EXPECT_EQ(ReadAll(tunnel.socket.get()), std::string("a\0b\n", 4));
}

TEST(TunnelProcessTest, WhatItSaidLastIsToldWithItsStatus) {
  const auto tunnel =
      Shell("echo banner >&2; echo one >&2; echo two >&2; printf '\\nssh: no route\\n\\n' >&2; exit 255");
  const std::string text = tunnel.process->Describe(kLong);
  EXPECT_THAT(text, HasSubstr("ended with status 255: one; two; ssh: no route"));
  EXPECT_THAT(text, Not(HasSubstr("banner;")));
  EXPECT_TRUE(tunnel.process->ended());
}

TEST(TunnelProcessTest, ASignalIsCalledOne) {
  const Tunnel tunnel = Shell("kill -9 $$");
  EXPECT_THAT(tunnel.process->Describe(kLong), HasSubstr("was ended by signal 9"));
}

TEST(TunnelProcessTest, EndlessWordsAreBoundedAndDoNotBlockIt) {
  const auto tunnel =
      Shell("i=0; while [ $i -lt 20000 ]; do echo xxxxxxxxxxxxxxxxxxxxxxxx >&2; i=$((i+1)); done; exit 3");
  EXPECT_THAT(tunnel.process->Describe(kLong), HasSubstr("ended with status 3"));
  EXPECT_LE(tunnel.process->errors().size(), 4096U);
}

TEST(TunnelProcessTest, ItsWholeGroupEndsWithIt) {
  Tunnel tunnel = Shell("trap '' TERM HUP; sleep 1000 & echo $$ $!; wait; sleep 1000");
  char window[64] = {};
  ASSERT_GT(::read(tunnel.socket.get(), window, sizeof(window) - 1), 0);
  int leader = 0;
  int sleeper = 0;
  ASSERT_EQ(std::sscanf(window, "%d %d", &leader, &sleeper), 2);
  tunnel.process.reset();
  EXPECT_EQ(::kill(leader, 0), -1);
  // The sleeper is nobody's child now; whoever reaps it does so soon, or it stays a zombie that holds no socket.
  EXPECT_EQ(ReadAll(tunnel.socket.get()), "");
}

TEST(TunnelProcessTest, AProgramThatIsNotThereIsNotFound) {
  const auto tunnel = TunnelProcess::Spawn({"no-such-program-as-this"}, STDIN_FILENO);
  ASSERT_FALSE(tunnel);
  EXPECT_EQ(tunnel.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(tunnel.error().message, HasSubstr("no-such-program-as-this"));
}

}  // namespace
}  // namespace lockstep::control
