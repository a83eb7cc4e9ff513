#include "present/live_site/health_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::live_site {
namespace {

using live::View;

class HealthLogTest : public testing::Test {
 protected:
  HealthLogTest() {
    view_.nodes.emplace_back().host = "n1";
    live::GpuView& gpu = view_.nodes[0].gpus.emplace_back();
    gpu.reading.gpu = "0";
    gpu.reading.vendor = "nvidia";
    gpu.reading.xid_events = 5;
    view_.nodes[0].collectors["nvml"].success = 1;
    view_.nodes[0].ports.emplace_back().device = "mlx5_0";
    view_.nodes[0].ports[0].port = "1";
    view_.nodes[0].ports[0].reading.active = 1;
    live::JobView& job = view_.jobs.emplace_back();
    job.job_id = "j";
    for (int i = 0; i < 20; ++i) {
      live::RankView& rank = job.ranks.emplace_back();
      rank.rank = std::to_string(i);
      rank.state = live::RankState::kRuns;
    }
  }

  /// What was added, oldest first: "kind phase".
  std::vector<std::string> Take() {
    view_.taken_unix_ns += 1'000'000'000;
    const size_t before = log_.entries().size();
    log_.Take(view_);
    std::vector<std::string> added;
    const auto entries = log_.entries();
    for (size_t i = entries.size() - before; i-- > 0;) {
      const char* phase = entries[i].phase == HealthPhase::kBegan   ? " began"
                          : entries[i].phase == HealthPhase::kEnded ? " ended"
                                                                    : "";
      added.push_back(entries[i].kind + phase);
    }
    return added;
  }

  View view_;
  HealthLog log_;
};

using Kinds = std::vector<std::string>;

TEST_F(HealthLogTest, WhatIsWellIsNoEntry) {
  EXPECT_EQ(Take(), Kinds());
  EXPECT_EQ(Take(), Kinds());
}

TEST_F(HealthLogTest, ErrorsFromBeforeWeLookedAreNotNews) {
  Take();
  view_.nodes[0].gpus[0].reading.xid_events = 7;
  EXPECT_EQ(Take(), Kinds{"xid"});
  EXPECT_EQ(log_.entries().front().text, "n1 gpu 0: 2 Xid errors");
  EXPECT_EQ(log_.entries().front().device, "0");
  EXPECT_EQ(Take(), Kinds());
}

TEST_F(HealthLogTest, WhatHoldsBeginsAndEndsOnce) {
  view_.nodes[0].ports[0].reading.active = 0;
  EXPECT_EQ(Take(), Kinds{"link_down began"});
  EXPECT_EQ(Take(), Kinds());
  view_.nodes[0].ports[0].reading.active = 1;
  EXPECT_EQ(Take(), Kinds{"link_down ended"});
}

TEST_F(HealthLogTest, OfANodeThatIsSilentNothingElseIsKnownToEnd) {
  view_.nodes[0].ports[0].reading.active = 0;
  Take();
  View well = view_;
  view_.nodes[0].error = Error{ErrorCode::kNotFound, "nobody listens"};
  view_.nodes[0].ports.clear();
  view_.nodes[0].gpus.clear();
  EXPECT_EQ(Take(), Kinds{"node_unheard began"});
  well.nodes[0].ports[0].reading.active = 1;
  well.taken_unix_ns = view_.taken_unix_ns;
  view_ = well;
  EXPECT_EQ(Take(), (Kinds{"link_down ended", "node_unheard ended"}));
}

TEST_F(HealthLogTest, ManyRanksMakeOneEntry) {
  Take();
  for (auto& rank : view_.jobs[0].ranks) rank.state = live::RankState::kStuck;
  EXPECT_EQ(Take(), Kinds{"rank_stuck began"});
  EXPECT_EQ(log_.entries().front().text, "job j: ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more stuck");
  view_.jobs[0].ranks.resize(19);
  EXPECT_EQ(Take(), Kinds{"rank_gone"});
  EXPECT_EQ(log_.entries().front().rank, "19");
  view_.jobs.clear();
  EXPECT_EQ(Take(), (Kinds{"job_gone", "rank_stuck ended"}));
}

TEST_F(HealthLogTest, AGpuThatIsGoneIsSaidOnce) {
  Take();
  view_.nodes[0].gpus.clear();
  EXPECT_EQ(Take(), Kinds{"gpu_gone"});
  EXPECT_EQ(Take(), Kinds());
}

TEST_F(HealthLogTest, AGpuThatNobodyReadsIsNotGone) {
  Take();
  const auto gpus = view_.nodes[0].gpus;
  view_.nodes[0].gpus.clear();
  view_.nodes[0].collectors.clear();  // The daemon was started anew, and its sensors have not looked yet.
  EXPECT_EQ(Take(), Kinds());
  view_.nodes[0].collectors["amdgpu"].success = 1;
  EXPECT_EQ(Take(), Kinds());
  view_.nodes[0].collectors["nvml"].success = 0;
  EXPECT_EQ(Take(), Kinds());
  view_.nodes[0].collectors["nvml"].success = 1;
  view_.nodes[0].gpus = gpus;
  EXPECT_EQ(Take(), Kinds());
}

TEST_F(HealthLogTest, AGpuThatIsLostIsToldWithItsLastErrors) {
  view_.nodes[0].visible_gpus = view_.nodes[0].expected_gpus = 1;
  Take();
  view_.nodes[0].lost_gpus = {view_.nodes[0].gpus[0].reading};
  view_.nodes[0].lost_gpus[0].xid_events = 6;
  view_.nodes[0].gpus.clear();
  view_.nodes[0].visible_gpus = 0;
  EXPECT_EQ(Take(), (Kinds{"xid", "gpu_gone", "gpu_missing began"}));
  EXPECT_EQ(log_.entries().front().text, "n1: 0 of 1 GPUs are there");
}

TEST_F(HealthLogTest, ErrorsAfterADaemonBeganAnewAreNews) {
  Take();
  view_.nodes[0].gpus[0].reading.xid_events = 0;
  EXPECT_EQ(Take(), Kinds());
  view_.nodes[0].gpus[0].reading.xid_events = 1;
  EXPECT_EQ(Take(), Kinds{"xid"});
}

TEST_F(HealthLogTest, TheLogIsBounded) {
  for (int i = 0; i < 1000; ++i) {
    view_.nodes[0].ports[0].reading.active = i % 2;
    view_.taken_unix_ns += 1;
    log_.Take(view_);
  }
  EXPECT_EQ(log_.entries().size(), HealthLog::kMostEntries);
  EXPECT_NE(log_.Json().find("\"dropped_count\":744,"), std::string::npos) << log_.Json().substr(0, 100);
}

}  // namespace
}  // namespace lockstep::live_site
