#include "node/agent/capture/capture_select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/nanoseconds.h"
#include "node/agent/capture/fake_registry.h"
#include "node/agent/capture/lead.h"
#include "node/agent/capture/trace_name.h"

namespace lockstep::agent {
namespace {

using control::CaptureSpec;
using control::Process;
using control::ProcessRole;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Process Of(int32_t pid, std::optional<int32_t> rank, const std::string& job = "77", uint32_t uid = 1000) {
  Process process;
  process.id = fmt::format("{}-5", pid);
  process.pid = pid;
  process.client_pids = {pid};
  process.uid = uid;
  process.rank = rank;
  process.job_id = job;
  return process;
}

std::vector<int32_t> Pids(const Selection& selection) {
  std::vector<int32_t> pids;
  for (const Process& process : selection.chosen) pids.push_back(process.pid);
  return pids;
}

const Caller kRoot = {.uid = 0, .may_trace_all = true, .name = "root"};
const Caller kOwner = {.uid = 1000, .may_trace_all = false, .name = "owner"};
constexpr int32_t kNoPid = 1 << 30;  // Beyond any pid of the kernel's.

TEST(CaptureSelectTest, LaunchersAndHelpersAreLeftOutUnlessAskedFor) {
  std::vector<Process> processes = {Of(kNoPid, {}), Of(kNoPid + 1, 0), Of(kNoPid + 2, 0)};
  processes[0].role = ProcessRole::kLauncher;
  processes[2].role = ProcessRole::kHelper;
  CaptureSpec spec;
  EXPECT_THAT(Pids(Select(processes, spec, kRoot)), ElementsAre(kNoPid + 1));
  EXPECT_EQ(Select(processes, spec, kRoot).launcher_count, 2u);
  spec.selector.process_ids = {processes[0].id};
  EXPECT_THAT(Pids(Select(processes, spec, kRoot)), ElementsAre(kNoPid));
  spec.selector = {};
  spec.selector.include_launchers = true;
  EXPECT_THAT(Pids(Select(processes, spec, kRoot)), ElementsAre(kNoPid + 1, kNoPid + 2, kNoPid));
}

TEST(CaptureSelectTest, AllThatIsSetMustHold) {
  const std::vector<Process> processes = {Of(kNoPid, 0, "1"), Of(kNoPid + 1, 1, "1"), Of(kNoPid + 2, 1, "2"),
                                          Of(kNoPid + 3, {}, "1"), Of(kNoPid + 4, 9, "1", 7)};
  CaptureSpec spec;
  spec.selector.job_id = "1";
  spec.selector.ranks = {{1, 3}, {9, 9}};
  EXPECT_THAT(Pids(Select(processes, spec, kRoot)), ElementsAre(kNoPid + 1, kNoPid + 4));
  EXPECT_THAT(Pids(Select(processes, spec, kOwner)), ElementsAre(kNoPid + 1));
  EXPECT_EQ(Select(processes, spec, kOwner).forbidden_count, 1u);
  spec.selector.uid = 7;
  EXPECT_THAT(Pids(Select(processes, spec, kRoot)), ElementsAre(kNoPid + 4));
  EXPECT_THAT(Pids(Select(processes, spec, kOwner)), IsEmpty());
}

TEST(CaptureSelectTest, AJobIsFoundByItsNumberAlone) {
  const std::vector<Process> processes = {Of(kNoPid, 0, "123.pbs01"), Of(kNoPid + 1, 1, "1234"),
                                          Of(kNoPid + 2, 2, "12")};
  CaptureSpec spec;
  spec.selector.job_id = "123";
  EXPECT_THAT(Pids(Select(processes, spec, kRoot)), ElementsAre(kNoPid));
}

TEST(CaptureSelectTest, APidSelectsItsDescendants) {
  TestChild child;
  const std::vector<Process> processes = {Of(child.pid(), 0), Of(kNoPid, 1)};
  CaptureSpec spec;
  spec.selector.pids = {getpid()};
  EXPECT_THAT(Pids(Select(processes, spec, kRoot)), ElementsAre(child.pid()));
  spec.selector.pids = {child.pid()};
  EXPECT_THAT(Pids(Select(processes, spec, kRoot)), ElementsAre(child.pid()));
}

TEST(CaptureSelectTest, InAPidNamespaceOfItsOwnItIsKnownByItsOwnPids) {
  Process process = Of(kNoPid, 0);
  process.client_pids = {42, 1};
  CaptureSpec spec;
  spec.selector.pids = {42};
  EXPECT_THAT(Pids(Select({process}, spec, kRoot)), ElementsAre(kNoPid));
}

TEST(CaptureSelectTest, TheLimitKeepsTheFirstRanks) {
  const std::vector<Process> processes = {Of(kNoPid, 10), Of(kNoPid + 1, 2), Of(kNoPid + 2, {}), Of(kNoPid + 3, 1)};
  CaptureSpec spec;
  spec.process_limit = 2;
  EXPECT_THAT(Pids(Select(processes, spec, kRoot)), ElementsAre(kNoPid + 3, kNoPid + 1));
}

TEST(CaptureSelectTest, AWorldIsWholeWithAllItsRanks) {
  std::vector<Process> processes = {Of(1, 0), Of(2, 1)};
  EXPECT_FALSE(IsWholeWorld(processes));
  for (Process& process : processes) process.world_size = 2;
  EXPECT_TRUE(IsWholeWorld(processes));
  processes.pop_back();
  EXPECT_FALSE(IsWholeWorld(processes));
  EXPECT_FALSE(IsWholeWorld({}));
}

TEST(CaptureSelectTest, AnEmptyMatchSaysOnlyWhatIsTheCallers) {
  const std::vector<Process> processes = {Of(kNoPid, 0, "secret", 7)};
  CaptureSpec spec;
  spec.selector.job_id = "1";
  const std::string text = DescribeNoMatch(processes, spec, kOwner, Select(processes, spec, kOwner));
  EXPECT_THAT(text, HasSubstr("none of yours"));
  EXPECT_THAT(text, testing::Not(HasSubstr("secret")));
}

TEST(CaptureSelectTest, AProcessThatRunsWithoutTheVariableIsTold) {
  TestChild child;
  CaptureSpec spec;
  spec.selector.pids = {child.pid()};
  EXPECT_THAT(DescribeNoMatch({}, spec, kRoot, Select({}, spec, kRoot)), HasSubstr("without KINETO_USE_DAEMON=1"));
  const Caller other = {.uid = 4'000'000, .may_trace_all = false, .name = "other"};
  EXPECT_THAT(DescribeNoMatch({}, spec, other, Select({}, spec, other)), testing::Not(HasSubstr("runs")));
}

TEST(LeadTest, IsPollWarmupAndTicks) {
  std::vector<Process> processes = {Of(1, 0), Of(2, 1)};
  control::CaptureWindow window;
  EXPECT_EQ(LeastLeadNs(processes, window), 8 * kSecondNs);
  processes[1].device = "cuda";
  EXPECT_EQ(LeastLeadNs(processes, window), 12 * kSecondNs);
  processes[0].poll_period_ns = processes[1].poll_period_ns = kSecondNs;
  EXPECT_EQ(LeastLeadNs(processes, window), 8 * kSecondNs);
  window.warmup_ns = 0;
  EXPECT_EQ(LeastLeadNs(processes, window), 3 * kSecondNs);
}

TEST(LeadTest, CountsFromTheHandingOver) {
  const std::vector<Process> processes = {Of(1, 0)};
  control::CaptureWindow window;
  EXPECT_TRUE(CheckLead(processes, window, 0));
  window.start_unix_ns = 10 * kSecondNs;
  EXPECT_TRUE(CheckLead(processes, window, 2 * kSecondNs));
  EXPECT_FALSE(CheckLead(processes, window, 2 * kSecondNs + 1));
  EXPECT_FALSE(CheckLead(processes, window, 20 * kSecondNs));
  window.deliver_from_unix_ns = 3 * kSecondNs;
  EXPECT_FALSE(CheckLead(processes, window, 0));
  window.mode = control::CaptureWindow::Mode::kIterations;
  EXPECT_TRUE(CheckLead(processes, window, 20 * kSecondNs));
}

TEST(TraceNameTest, HoldsJobHostRankPidAndStart) {
  constexpr int64_t kStart = 1'795'309'346'123'456'789;  // 2026-11-22T01:02:26.123
  EXPECT_EQ(TraceName(Of(4711, 3, "12_3"), "node7", kStart), "12_3-node7-rank3-pid4711-20261122T010226123Z.json");
  EXPECT_EQ(TraceName(Of(4711, {}, ""), "gpu-a.cluster.example", kStart),
            "gpu-a-cluster-example-pid4711-20261122T010226123Z.json");
  Process process = Of(0, 0, "");
  process.client_pids = {8, 1};
  EXPECT_EQ(TraceName(process, "", kStart), "node-rank0-pid8-20261122T010226123Z.json");
  EXPECT_EQ(ClockUtc(kStart), "01:02:26 UTC");
}

TEST(TraceNameTest, HostileJobsAndHostsMakeSafeNames) {
  const std::vector<std::string> names = {
      "../../etc", "a.json", "x.pt.trace.json",        "a=b#c\nd", std::string(300, 'x'),
      "...",       "-",      std::string("nul\0l", 5), "\xff\xfe", "$(reboot)"};
  for (const std::string& bad : names) {
    const std::string name = TraceName(Of(1, 0, bad), bad, 0);
    EXPECT_LE(name.size(), 200u);
    EXPECT_EQ(name.find(".json"), name.size() - 5) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"),
              std::string::npos)
        << name;
    EXPECT_TRUE(CheckLogFile("/tmp/" + name)) << name;
    EXPECT_NE(name.front(), '-') << name;
  }
}

}  // namespace
}  // namespace lockstep::agent
