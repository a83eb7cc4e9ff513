#include "node/agent/dynolog/request_match.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

namespace lockstep::agent {
namespace {

using control::JobKind;
using control::Process;
using control::ProcessRole;
using testing::ElementsAre;
using testing::IsEmpty;

const Caller kRoot = {.uid = 0, .may_trace_all = true, .name = "root"};
const Caller kBob = {.uid = 2000, .may_trace_all = false, .name = "bob"};
const Caller kStranger = {.uid = {}, .may_trace_all = false, .name = "somebody"};

Process Registered(int32_t pid, uint32_t uid, std::vector<int32_t> client_pids) {
  Process process;
  process.id = std::to_string(pid) + "-1";
  process.pid = pid;
  process.uid = uid;
  process.client_pids = std::move(client_pids);
  return process;
}

std::vector<Process> Node() {
  Process launcher = Registered(10, 1000, {10, 9});
  launcher.role = ProcessRole::kLauncher;
  const Process first = Registered(11, 1000, {11, 10, 9});
  const Process contained = Registered(12, 1000, {4, 3});
  Process queued = Registered(20, 2000, {20, 19});
  queued.job_kind = JobKind::kSlurm;
  queued.job_id = "77";
  return {launcher, first, contained, queued};
}

std::vector<std::string> Ids(const std::vector<Process>& processes) {
  std::vector<std::string> ids;
  for (const Process& process : processes) ids.push_back(process.id);
  return ids;
}

TEST(RequestMatchTest, NoPidsOrZeroMeansAllTrainersOfTheJob) {
  EXPECT_THAT(Ids(MatchRequest({}, Node(), kRoot)), ElementsAre("11-1", "12-1"));
  EXPECT_THAT(Ids(MatchRequest({.pids = {0}}, Node(), kRoot)), ElementsAre("11-1", "12-1"));
  EXPECT_THAT(Ids(MatchRequest({.job_id = 77}, Node(), kRoot)), ElementsAre("20-1"));
  EXPECT_THAT(Ids(MatchRequest({.job_id = 78}, Node(), kRoot)), IsEmpty());
}

TEST(RequestMatchTest, APidSelectsItselfAndItsDescendants) {
  EXPECT_THAT(Ids(MatchRequest({.pids = {10}}, Node(), kRoot)), ElementsAre("11-1"));
  EXPECT_THAT(Ids(MatchRequest({.pids = {3}}, Node(), kRoot)), ElementsAre("12-1"));   // as the process sees it
  EXPECT_THAT(Ids(MatchRequest({.pids = {12}}, Node(), kRoot)), ElementsAre("12-1"));  // as the node sees it
  EXPECT_THAT(Ids(MatchRequest({.pids = {0, 99}}, Node(), kRoot)), IsEmpty());
}

TEST(RequestMatchTest, OnlyTheCallersOwnProcessesMatch) {
  EXPECT_THAT(MatchRequest({}, Node(), kBob), IsEmpty());
  EXPECT_THAT(Ids(MatchRequest({.job_id = 77}, Node(), kBob)), ElementsAre("20-1"));
  EXPECT_THAT(MatchRequest({}, Node(), kStranger), IsEmpty());
}

TEST(RequestMatchTest, OnlyPlainPathsBelowAnAllowedFolderAreInIt) {
  const std::vector<std::string> folders = {"/tmp", "/scratch/traces/"};
  for (const char* path : {"/tmp/a.json", "/tmp/x/a.json", "/scratch/traces/a.json", "/tmp/..a.json"})
    EXPECT_TRUE(IsInFolders(path, folders)) << path;
  for (const char* path : {"", "a.json", "/tmp", "/tmp/", "/tmpa.json", "/tmp/../etc/a.json", "/tmp//a.json",
                           "/tmp/./a.json", "/tmp/..", "/scratch/a.json", "/scratch/traces", "/tmp/a\n.json"})
    EXPECT_FALSE(IsInFolders(path, folders)) << path;
  EXPECT_FALSE(IsInFolders("/tmp/a.json", {}));
}

}  // namespace
}  // namespace lockstep::agent
