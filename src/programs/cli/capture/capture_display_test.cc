#include "programs/cli/capture/capture_display.h"

#include <gmock/gmock.h>

#include <sstream>

namespace lockstep::cli {
namespace {

using control::JobNodeState;
using control::JobProgress;
using control::JobTarget;
using control::TargetState;
using testing::ElementsAre;
using testing::HasSubstr;

JobNodeState Node(const char* host) {
  JobNodeState node;
  node.host = host;
  return node;
}

JobTarget Target(int32_t rank, size_t node, TargetState state) {
  JobTarget target;
  target.node_idx = node;
  target.process.rank = rank;
  target.process.pid = 100 + rank;
  target.state = state;
  return target;
}

TEST(CaptureDisplayTest, SaysWhoIsCaptured) {
  const std::vector<JobNodeState> nodes = {Node("n1"), Node("n2")};
  EXPECT_EQ(WhoText({Target(0, 0, TargetState::kQueued), Target(1, 1, TargetState::kQueued)}, nodes),
            "2 ranks on 2 nodes");
  EXPECT_EQ(WhoText({Target(0, 0, TargetState::kQueued)}, nodes), "1 rank on n1 (pid 100)");
  JobTarget lone;
  lone.process.pid = 7;
  EXPECT_EQ(WhoText({lone, lone}, nodes), "2 processes on n1");
}

TEST(CaptureDisplayTest, ALineForEachRank) {
  const std::vector<JobNodeState> nodes = {Node("n1")};
  std::vector<JobTarget> targets = {Target(0, 0, TargetState::kDone), Target(10, 0, TargetState::kRefused)};
  targets[0].file = "x.json.gz";
  targets[0].file_bytes = 2048;
  targets[1].reason = "busy";
  const JobProgress progress = {JobProgress::Phase::kFollowing, nodes, targets, 8'000'000'000};
  EXPECT_THAT(ProgressLines(progress, 5'500'000'000),
              ElementsAre("2 ranks on n1: 1 here, 1 refused; starts in 2.5 s",  //
                          "  rank 0 (n1, pid 100)   here, 2.00 KiB",            //
                          "  rank 10 (n1, pid 110)  refused: busy"));
}

TEST(CaptureDisplayTest, ManyRanksAreOneLine) {
  const std::vector<JobNodeState> nodes = {Node("n1")};
  std::vector<JobTarget> targets;
  for (int32_t rank = 0; rank < 17; ++rank) targets.push_back(Target(rank, 0, TargetState::kCollecting));
  EXPECT_THAT(ProgressLines({JobProgress::Phase::kFollowing, nodes, targets}, 0),
              ElementsAre("17 ranks on n1: 17 collecting"));
}

TEST(CaptureDisplayTest, WithoutATerminalOnlyChangesAreTold) {
  std::ostringstream err;
  CaptureDisplay display(err, false, 80, false);
  const std::vector<JobNodeState> nodes = {Node("n1")};
  std::vector<JobTarget> targets = {Target(0, 0, TargetState::kQueued)};
  for (int i = 0; i < 3; ++i) display.Update({JobProgress::Phase::kFollowing, nodes, targets});
  targets[0].state = TargetState::kWriting;
  for (int i = 0; i < 3; ++i) display.Update({JobProgress::Phase::kFollowing, nodes, targets});
  EXPECT_EQ(err.str(), "rank 0 (n1, pid 100): waits until it asks for work\nrank 0 (n1, pid 100): writing its trace\n");
}

TEST(CaptureDisplayTest, NothingFromANodeReachesTheTerminalRaw) {
  const std::vector<JobNodeState> nodes = {Node("n\x1b[2J1")};
  std::vector<JobTarget> targets = {Target(0, 0, TargetState::kRefused)};
  targets[0].reason = "\x1b]0;x\x07";
  for (const std::string& line : ProgressLines({JobProgress::Phase::kFollowing, nodes, targets}, 0)) {
    EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace lockstep::cli
