#include "node/proc/rank_finder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

namespace lockstep::proc {
namespace {

/// A process that is a rank of `job` by its environment, once nobody has the other end of the pipe `until` any more.
pid_t StartRank(const char* job, const std::array<int, 2>& until = {-1, -1}) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::close(until[1]);
  char byte = 0;
  while (::read(until[0], &byte, 1) > 0) continue;
  const std::string id = std::string("TORCHELASTIC_RUN_ID=") + job;
  const char* const environment[] = {"RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=3", id.c_str(), nullptr};
  ::execle("/bin/sleep", "sleep", "60", nullptr, const_cast<char* const*>(environment));
  ::_exit(1);
}

std::optional<JobProcess> Find(RankFinder* finder, pid_t pid) {
  for (const JobProcess& process : finder->Find()) {
    if (process.pid == pid) return process;
  }
  return std::nullopt;
}

std::optional<JobProcess> Await(RankFinder* finder, pid_t pid) {
  std::optional<JobProcess> found;
  for (int i = 0; i < 1000 && !found; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    found = Find(finder, pid);
  }
  return found;
}

TEST(RankFinderTest, FindsARankEachTimeUntilItHasEnded) {
  const pid_t child = StartRank("finder-1");
  RankFinder finder([](uint32_t uid) { return uid == ::getuid(); });
  const auto found = Await(&finder, child);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->details.rank, 3);
  EXPECT_EQ(found->details.job_id, "finder-1");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Find(&finder, child));
  ::kill(child, SIGKILL);
  siginfo_t info = {};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_FALSE(Find(&finder, child));  // Nobody has asked yet how it ended.
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(Find(&finder, child));
}

TEST(RankFinderTest, AYoungProcessMayBecomeARank) {
  std::array<int, 2> held = {};
  ASSERT_EQ(::pipe2(held.data(), O_CLOEXEC), 0);
  const pid_t child = StartRank("finder-2", held);
  RankFinder finder([](uint32_t uid) { return uid == ::getuid(); });
  EXPECT_FALSE(Find(&finder, child));
  for (const int end : held) ::close(end);
  EXPECT_TRUE(Await(&finder, child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(RankFinderTest, OthersProcessesAreLeftAlone) {
  const pid_t child = StartRank("finder-3");
  RankFinder all([](uint32_t) { return true; });
  EXPECT_TRUE(Await(&all, child));
  RankFinder none([](uint32_t) { return false; });
  EXPECT_TRUE(none.Find().empty());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace lockstep::proc
