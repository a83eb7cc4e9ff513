#include "node/proc/job_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "node/proc/proc_reader.h"

namespace lockstep::proc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

bool Any(uint32_t /*uid*/) { return true; }

JobProcessSelector OfJob(const char* job) { return {job, {}, {}}; }
JobProcessSelector OfPids(std::vector<int32_t> pids) { return {"", std::move(pids), {}}; }
JobProcessSelector OfRanks(int32_t first, int32_t last) { return {"", {}, {{first, last}}}; }

/// A /proc of our making; all processes in it are this user's.
class MadeProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "job_processes_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Add(int pid, int parent, std::string environment, bool torch, const std::string& arguments = "python train.py") {
    const std::filesystem::path folder = root_ / std::to_string(pid);
    std::filesystem::create_directories(folder / "fd");
    std::filesystem::create_directories(folder / "root/site/torch/lib");
    const auto zeros = [](std::string text) {
      std::replace(text.begin(), text.end(), ' ', '\0');
      return text + '\0';
    };
    std::ofstream(folder / "stat") << pid << " (python) S " << parent << " 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 "
                                   << 1000 + pid << " 22\n";
    std::ofstream(folder / "environ") << zeros(std::move(environment));
    std::ofstream(folder / "cmdline") << zeros(arguments);
    std::ofstream(folder / "comm") << "python\n";
    std::ofstream(folder / "maps") << (torch ? "7f00-7f10 r-xp 0 0:0 1 /site/torch/lib/libtorch_cpu.so\n" : "");
    std::ofstream(folder / "root/site/torch/version.py") << "__version__ = '2.13.0+cpu'\n";
  }
  std::vector<int32_t> Find(const JobProcessSelector& selector) {
    std::vector<int32_t> pids;
    for (const JobProcess& process : FindJobProcesses(selector, Any, root_).chosen) pids.push_back(process.pid);
    return pids;
  }

  std::filesystem::path root_;
};

constexpr const char* kRank0 = "RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=job1";
constexpr const char* kRank1 = "RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=job1";

TEST_F(MadeProcesses, RanksAreFoundWithoutTheirLauncherAndTheirHelpers) {
  Add(10, 1, "A=b", true, "python -m torch.distributed.run train.py");
  Add(12, 10, kRank1, true);
  Add(11, 10, kRank0, true);
  Add(13, 11, kRank0, true, "python -c worker");
  Add(14, 11, kRank0, false, "sleep 5");
  Add(20, 1, "A=b", false, "bash");
  EXPECT_THAT(Find({}), ElementsAre(11, 12));
  EXPECT_THAT(Find(OfJob("job1")), ElementsAre(11, 12));
  EXPECT_THAT(Find(OfJob("job2")), IsEmpty());
  EXPECT_THAT(Find(OfRanks(1, 3)), ElementsAre(12));
  EXPECT_THAT(Find(OfPids({10})), ElementsAre(11, 12));
  EXPECT_THAT(Find(OfPids({12})), ElementsAre(12));
}

TEST_F(MadeProcesses, RankBehindAWrapperIsTheOneWithPyTorch) {
  Add(11, 10, kRank0, false, "bash wrapper.sh");
  Add(12, 11, kRank0, true);
  Add(13, 10, kRank1, false);  // Has not imported it yet.
  EXPECT_THAT(Find(OfJob("job1")), ElementsAre(12, 13));
}

TEST_F(MadeProcesses, NamedPidIsTakenWhateverItIs) {
  Add(20, 1, "A=b", false, "bash");
  EXPECT_THAT(Find(OfPids({20})), ElementsAre(20));
  const JobProcesses found = FindJobProcesses(OfPids({20, 21}), Any, root_);
  EXPECT_THAT(found.absent_pids, ElementsAre(21));
}

TEST_F(MadeProcesses, WhatIsNotTheCallersIsNotRead) {
  Add(11, 10, kRank0, true);
  const JobProcesses found = FindJobProcesses(
      OfPids({11}), [](uint32_t) { return false; }, root_);
  EXPECT_THAT(found.chosen, IsEmpty());
  EXPECT_EQ(found.forbidden_count, 1U);
  EXPECT_THAT(found.absent_pids, IsEmpty());
}

TEST_F(MadeProcesses, ThreadsThatHardlyRunSeemToHaveUsedNoWholeTicks) {
  Add(20, 1, "A=b", true);
  const auto thread = [&](int tid, int ticks, const char* schedule) {
    const std::filesystem::path folder = root_ / "20/task" / std::to_string(tid);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "stat") << tid << " (gloo_tcp_loop) S 1 3 4 5 6 7 8 9 10 11 " << ticks
                                   << " 0 14 15 16 17 18 19 1020 22\n";
    if (schedule != nullptr) std::ofstream(folder / "schedstat") << schedule;
  };
  thread(20, 5, "50000000 1 1\n");
  thread(21, 1, "9900000 20 3\n");
  thread(22, 1, "9900000 20 3\n");
  const auto before = ReadGlance(20, 1020, root_);
  ASSERT_TRUE(before);
  EXPECT_EQ(before->main_cpu_ns, 50'000'000);
  thread(21, 2, "10100000 21 3\n");
  thread(22, 2, "10100000 21 3\n");
  const auto after = ReadGlance(20, 1020, root_);
  EXPECT_EQ(after->threads_cpu_ns - before->threads_cpu_ns, 400'000) << "each has completed a tick of 10 ms";

  std::filesystem::remove(root_ / "20/task/22/schedstat");
  EXPECT_EQ(ReadGlance(20, 1020, root_)->threads_cpu_ns, 10'100'000 + 20'000'000) << "a kernel without it";
}

TEST(GlanceTest, SleepingProcessDoesNotMoveAndAWokenOneDoes) {
  int pipe_fds[2];
  ASSERT_EQ(::pipe(pipe_fds), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    while (::read(pipe_fds[0], &byte, 1) == 1) {
    }
    ::_exit(0);
  }
  const auto start = ProcReader("/proc").ReadBriefly(child, 0)->start_ticks;
  // Once it sleeps in the read it has nothing more to do.
  std::optional<Glance> before = ReadGlance(child, start);
  while (before && before->state != 'S') before = ReadGlance(child, start);
  ASSERT_TRUE(before);
  before = ReadGlance(child, start);
  EXPECT_EQ(ReadGlance(child, start)->main_switches, before->main_switches);
  ASSERT_EQ(::write(pipe_fds[1], "x", 1), 1);
  std::optional<Glance> after = before;
  while (after && after->main_switches == before->main_switches) after = ReadGlance(child, start);
  EXPECT_TRUE(after);
  EXPECT_FALSE(ReadGlance(child, start + 1).has_value()) << "another process of that pid";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(ReadGlance(child, start).has_value());
  ::close(pipe_fds[0]);
  ::close(pipe_fds[1]);
}

}  // namespace
}  // namespace lockstep::proc
