#include "agent/dynolog/request_match.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace lockstep::agent {
namespace {

using control::JobKind;
using control::Process;
using control::ProcessRole;
using testing::ElementsAre;
using testing::IsEmpty;

const Caller kRoot = {.uid = 0, .may_trace_all = true, .name = "root"};

std::vector<Process> Node() {
  Process launcher{.id = "10-1", .pid = 10, .uid = 1000, .client_pids = {10, 9}, .role = ProcessRole::kLauncher};
  Process first{.id = "11-1", .pid = 11, .uid = 1000, .client_pids = {11, 10, 9}};
  Process second{.id = "12-1", .pid = 12, .uid = 1000, .client_pids = {4, 3}};  // in a container
  Process queued{
      .id = "20-1", .pid = 20, .uid = 2000, .client_pids = {20, 19}, .job_kind = JobKind::kSlurm, .job_id = "77"};
  return {launcher, first, second, queued};
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
  EXPECT_THAT(MatchRequest({}, Node(), {.uid = 2000, .name = "bob"}), IsEmpty());
  EXPECT_THAT(Ids(MatchRequest({.job_id = 77}, Node(), {.uid = 2000, .name = "bob"})), ElementsAre("20-1"));
  EXPECT_THAT(MatchRequest({}, Node(), {.name = "nobody known"}), IsEmpty());
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
