#include "base/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "base/unique_fd.h"

namespace lockstep {
namespace {

TEST(RunCommandTest, GivesOutputErrorsAndStatus) {
  const auto ran = RunCommand({"sh", "-c", "printf out; printf err >&2; exit 3"});
  ASSERT_TRUE(ran) << ran.error().ToString();
  EXPECT_EQ(ran->output, "out");
  EXPECT_EQ(ran->error, "err");
  EXPECT_EQ(ran->exit_status, 3);
}

TEST(RunCommandTest, ArgumentsReachNoShell) {
  const auto ran = RunCommand({"printf", "%s|%s", "$(echo no); *", "a b"});
  ASSERT_TRUE(ran);
  EXPECT_EQ(ran->output, "$(echo no); *|a b");
}

TEST(ChildProcessTest, OneThatIsTiedHasItsStreamsAndNothingElse) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe2(ends.data(), 0), 0);  // Even what is not closed by exec.
  const UniqueFd heard(ends[0]);
  UniqueFd said(ends[1]);
  auto child =
      ChildProcess::StartTied({"sh", "-c", "echo out; ls /proc/self/fd | tr '\\n' ' '"}, {.output = said.get()});
  ASSERT_TRUE(child) << child.error().ToString();
  said = UniqueFd();
  std::string text;
  std::array<char, 256> piece = {};
  for (ssize_t got = 0; (got = ::read(heard.get(), piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<size_t>(got));
  }
  EXPECT_EQ(child->End(60'000'000'000), 0);
  EXPECT_EQ(text, "out\n0 1 2 3 ");  // 3: the folder that ls reads.
  EXPECT_EQ(ChildProcess::StartTied({"no-such-program-of-lockstep"}, {}).error().code, ErrorCode::kNotFound);
}

TEST(ChildProcessTest, OneThatIsTiedEndsWithWhoStartedIt) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd heard(ends[0]);
  UniqueFd said(ends[1]);
  const pid_t starter = ::fork();
  ASSERT_GE(starter, 0);
  if (starter == 0) {
    auto child = ChildProcess::StartTied({"sleep", "1000"}, {.output = said.get()});
    ::kill(::getpid(), SIGKILL);  // Nothing of ours runs any more.
  }
  said = UniqueFd();
  ASSERT_EQ(::waitpid(starter, nullptr, 0), starter);
  char byte = 0;
  EXPECT_EQ(::read(heard.get(), &byte, 1), 0);  // The last who held the other end is gone.
}

TEST(RunCommandTest, SignalIsAShellsStatus) {
  const auto ran = RunCommand({"sh", "-c", "kill -TERM $$"});
  ASSERT_TRUE(ran);
  EXPECT_EQ(ran->exit_status, 128 + SIGTERM);
}

TEST(RunCommandTest, MissingProgramIsNotFound) {
  const auto ran = RunCommand({"no-such-program-of-lockstep"});
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kNotFound);
}

TEST(RunCommandTest, EndsWhatRunsTooLong) {
  const auto ran = RunCommand({"sleep", "1000"}, {.timeout_ns = 50'000'000});
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kCancelled);
}

TEST(RunCommandTest, WhatRunsTooLongHasTimeToEndItsOwnWhereThatIsAsked) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd told(ends[0]);
  UniqueFd tell(ends[1]);
  const std::string script = fmt::format("trap 'echo ended >/proc/{}/fd/{}; exit 0' TERM; while :; do sleep 0.05; done",
                                         ::getpid(), tell.get());
  const auto ran = RunCommand({"sh", "-c", script}, {.timeout_ns = 5'000'000'000, .grace_ns = 60'000'000'000});
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kCancelled);
  tell = UniqueFd();
  std::array<char, 16> word = {};
  EXPECT_EQ(::read(told.get(), word.data(), word.size()), 6);
}

TEST(RunCommandTest, EndsWhatPrintsTooMuch) {
  const auto ran = RunCommand({"yes"}, {.output_bytes_limit = 100'000});
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kLimitExceeded);
}

TEST(RunCommandTest, DoesNotWaitForAGrandchildThatHoldsThePipe) {
  const auto ran = RunCommand({"sh", "-c", "sleep 1000 & echo $!"}, {.timeout_ns = 60'000'000'000});
  ASSERT_TRUE(ran) << ran.error().ToString();
  const int grandchild = std::atoi(ran->output.c_str());
  ASSERT_GT(grandchild, 1);
  ::kill(grandchild, SIGKILL);
}

TEST(RunCommandTest, MoreThanAPipeHoldsArrivesWhole) {
  const auto ran = RunCommand({"head", "-c", "1000000", "/dev/zero"});
  ASSERT_TRUE(ran);
  EXPECT_EQ(ran->output.size(), 1'000'000u);
}

TEST(RunCommandTest, EnvironmentIsTheOneGiven) {
  ::setenv("LOCKSTEP_TEST_DROPPED", "1", 1);
  ::setenv("LOCKSTEP_TES_KEPT", "1", 1);
  const auto ran = RunCommand({"env"}, {.environment = EnvironmentWithout({"LOCKSTEP_TEST_"})});
  ASSERT_TRUE(ran);
  EXPECT_THAT(ran->output, ::testing::HasSubstr("LOCKSTEP_TES_KEPT=1"));
  EXPECT_THAT(ran->output, ::testing::Not(::testing::HasSubstr("LOCKSTEP_TEST_DROPPED")));
}

TEST(ChildProcessTest, OneSocketServesAsInputAndOutput) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  auto child = ChildProcess::Start({"cat"}, {.input = theirs.get(), .output = theirs.get(), .error = 2});
  ASSERT_TRUE(child) << child.error().ToString();
  theirs = UniqueFd();
  ASSERT_EQ(::write(ours.get(), "hello", 5), 5);
  std::array<char, 8> reply = {};
  ASSERT_EQ(::read(ours.get(), reply.data(), reply.size()), 5);
  EXPECT_STREQ(reply.data(), "hello");
  ours = UniqueFd();
  // With its input ended, it ends by itself.
  const auto status = child->End(60'000'000'000);
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(WIFEXITED(*status));
  EXPECT_FALSE(child->running());
}

TEST(ChildProcessTest, HasNoOtherDescriptors) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe(ends.data()), 0);  // Without CLOEXEC on purpose.
  const auto ran = RunCommand({"ls", "/proc/self/fd"});
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_TRUE(ran);
  EXPECT_EQ(ran->output, "0\n1\n2\n3\n");  // 3 is the folder that ls reads.
}

TEST(ChildProcessTest, IsKilledWithItsGroupWhenItsOwnerEnds) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  {
    auto child = ChildProcess::Start({"sh", "-c", "sleep 1000 & sleep 1000"}, {.output = theirs.get()});
    ASSERT_TRUE(child);
    theirs = UniqueFd();
  }
  // The pipe's end comes only when both that hold it are gone.
  char byte = 0;
  EXPECT_EQ(::read(ours.get(), &byte, 1), 0);
}

}  // namespace
}  // namespace lockstep
