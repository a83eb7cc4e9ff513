// The target goes on whatever becomes of the collector. All real: processes, ptrace, kills.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <random>

#include "node/inspect/native_stacks.h"
#include "node/inspect/testing/target_process.h"
#include "node/inspect/thread_snapshot.h"

namespace lockstep::inspect {
namespace {

constexpr int64_t kLongestPauseNs = 10'000'000;

int64_t InSeconds(int64_t seconds) { return MonotonicNs() + seconds * 1'000'000'000; }

/// Counts in two threads, one of them without ever entering the kernel for long, and sleeps in between.
void CountInTwoThreads(SharedCounters* counters) {
  std::thread other([&] {
    while (true) {
      counters->other += 1;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  while (true) {
    for (int i = 0; i < 10'000; ++i) counters->main += 1;
    counters->ready = true;
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
}

/// Nobody traces it and none of its threads is stopped, or soon is.
bool IsFree(const TargetProcess& target) {
  return TargetProcess::WaitUntil([&] {
    const std::string status = ReadProcFile(target.pid(), "status").value_or("");
    if (status.find("TracerPid:\t0\n") == std::string::npos) return false;
    const std::vector<pid_t> tids = target.Threads();
    return std::none_of(tids.begin(), tids.end(), [&](pid_t tid) {
      const char state = target.StateOf(tid);
      return state == 'T' || state == 't';
    });
  });
}

TEST(SafetyTest, TargetGoesOnWhenTheCollectorIsKilledAHundredTimes) {
  if (!CanTakeSnapshots()) GTEST_SKIP() << "no native stacks on this machine";
  TargetProcess target(CountInTwoThreads);
  std::mt19937 random(5);
  int killed_count = 0;
  for (int i = 0; i < 100; ++i) {
    const pid_t collector = ::fork();
    if (collector == 0) {
      while (true) HoldThreads(target.pid(), target.Threads(), kLongestPauseNs, InSeconds(60));
    }
    ASSERT_GT(collector, 0);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 15'000));
    ::kill(collector, SIGKILL);
    int status = 0;
    ::waitpid(collector, &status, 0);
    killed_count += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    ASSERT_TRUE(IsFree(target)) << "after kill " << i;
    ASSERT_TRUE(target.GoesOn()) << "after kill " << i;
  }
  EXPECT_EQ(killed_count, 100);
}

TEST(SafetyTest, TargetGoesOnWhenTheTracerDiesWithAThreadInHand) {
  if (!CanTakeSnapshots()) GTEST_SKIP() << "no native stacks on this machine";
  TargetProcess target(CountInTwoThreads);
  std::mt19937 random(6);
  size_t died_count = 0;
  for (int i = 0; i < 60; ++i) {
    // Its own timer kills it somewhere between seizing a thread and letting it go.
    const int64_t pause_ns = 1'000 + static_cast<int64_t>(random() % 200'000);
    const HeldThreads held = HoldThreads(target.pid(), target.Threads(), pause_ns, InSeconds(60));
    died_count += held.refused.size();
    ASSERT_TRUE(IsFree(target)) << "after round " << i;
    ASSERT_TRUE(target.GoesOn()) << "after round " << i;
  }
  EXPECT_GT(died_count, 0u);
}

TEST(SafetyTest, NoThreadIsHeldLongerThanItsBound) {
  if (!CanTakeSnapshots()) GTEST_SKIP() << "no native stacks on this machine";
  TargetProcess target(CountInTwoThreads);
  int64_t longest_ns = 0;
  size_t held_count = 0;
  size_t let_go_count = 0;
  for (int i = 0; i < 100; ++i) {
    const HeldThreads held = HoldThreads(target.pid(), target.Threads(), kLongestPauseNs, InSeconds(60));
    held_count += held.snapshots.size();
    let_go_count += held.refused.size();
    for (const ThreadSnapshot& snapshot : held.snapshots) {
      EXPECT_FALSE(snapshot.stack.empty());
      EXPECT_LE(snapshot.pause_ns, kLongestPauseNs) << "its tracer should have been dead by then";
      longest_ns = std::max(longest_ns, snapshot.pause_ns);
    }
  }
  EXPECT_GT(held_count, 0u);
  EXPECT_TRUE(IsFree(target));
  EXPECT_TRUE(target.GoesOn());
  const std::string said = fmt::format("{} threads held, the longest for {} us; {} let go without a stack", held_count,
                                       longest_ns / 1000, let_go_count);
  RecordProperty("pauses", said);
  fmt::print("{}\n", said);
}

TEST(SafetyTest, ThreadThatCannotStopIsLetGo) {
  if (!CanTakeSnapshots()) GTEST_SKIP() << "no native stacks on this machine";
  // A parent that waits for its vfork child is in state D, as one that waits for a dead disk is.
  TargetProcess target([](SharedCounters* counters) {
    counters->ready = true;
    const long child = ::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, 0);
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (counters->other == 0) ::usleep(1000);
      ::_exit(0);
    }
    while (true) {
      counters->main += 1;
      ::usleep(1000);
    }
  });
  ASSERT_TRUE(TargetProcess::WaitUntil([&] { return target.State() == 'D'; }));
  const HeldThreads held = HoldThreads(target.pid(), {target.pid()}, kLongestPauseNs, InSeconds(60));
  EXPECT_TRUE(held.snapshots.empty());
  ASSERT_EQ(held.refused.size(), 1u);
  EXPECT_EQ(held.refused[0].error, 0);
  // Its stack is there all the same: the kernel says where it sleeps.
  const auto sleeping = SnapshotSleeping(target.pid(), target.pid());
  ASSERT_TRUE(sleeping);
  EXPECT_FALSE(sleeping->stack.empty());
  target.counters().other = 1;
  EXPECT_TRUE(TargetProcess::WaitUntil([&] { return target.counters().main > 0; })) << "no stop was left pending";
  EXPECT_TRUE(IsFree(target));
}

TEST(SafetyTest, StoppedProcessStaysStoppedAndGoesOnWhenContinued) {
  if (!CanTakeSnapshots()) GTEST_SKIP() << "no native stacks on this machine";
  TargetProcess target(CountInTwoThreads);
  ::kill(target.pid(), SIGSTOP);
  ASSERT_TRUE(TargetProcess::WaitUntil([&] { return target.State() == 'T'; }));
  for (int i = 0; i < 20; ++i) {
    const uint64_t main = target.counters().main;
    const NativeStacks stacks = ReadNativeStacks(target.pid(), target.Threads(), kLongestPauseNs, InSeconds(60));
    EXPECT_EQ(stacks.reason, "");
    EXPECT_EQ(stacks.frames.size(), 2u);
    ASSERT_TRUE(TargetProcess::WaitUntil([&] { return target.State() == 'T'; }));
    EXPECT_EQ(target.counters().main, main) << "it did not run in between";
  }
  ::kill(target.pid(), SIGCONT);
  EXPECT_TRUE(IsFree(target));
  EXPECT_TRUE(target.GoesOn());
}

TEST(SafetyTest, SignalThatComesWhileItIsHeldIsNotLost) {
  if (!CanTakeSnapshots()) GTEST_SKIP() << "no native stacks on this machine";
  static SharedCounters* shared = nullptr;
  TargetProcess target([](SharedCounters* counters) {
    shared = counters;
    struct sigaction action = {};
    action.sa_handler = [](int) { shared->other += 1; };
    ::sigaction(SIGUSR1, &action, nullptr);
    counters->ready = true;
    while (true) ::usleep(500);
  });
  for (uint64_t i = 1; i <= 200; ++i) {
    ::kill(target.pid(), SIGUSR1);
    if (i % 4 == 0) HoldThreads(target.pid(), {target.pid()}, kLongestPauseNs, InSeconds(60));
    ASSERT_TRUE(TargetProcess::WaitUntil([&] { return target.counters().other == i; })) << i;
  }
}

}  // namespace
}  // namespace lockstep::inspect
