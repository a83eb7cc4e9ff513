#include "analysis/wait_states/wait_sharing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace lockstep::analysis {
namespace {

/// A plan of one collective; members with a lateness have a node.
WaitPlan PlanOf(const std::vector<int64_t>& arrivals, const std::vector<int64_t>& lateness) {
  WaitPlan plan;
  plan.arrival_ns = {arrivals};
  plan.node_of_member.emplace_back();
  for (const int64_t lateness_ns : lateness) {
    plan.node_of_member[0].push_back(lateness_ns > 0 ? static_cast<int32_t>(plan.nodes.size()) : -1);
    if (lateness_ns > 0) plan.nodes.emplace_back().lateness_ns = lateness_ns;
  }
  return plan;
}

TEST(WaitSharingTest, LateMembersShareWhileSeveralAreMissing) {
  const WaitPlan plan = PlanOf({0, 10, 100, 160}, {0, 0, 95, 155});
  const WaitSharing sharing(plan, 0);
  ASSERT_EQ(sharing.late().size(), 2U);
  const WaitSharing::Wait of_first = sharing.WaitOf(0);
  EXPECT_EQ(sharing.Charge(of_first, 0), 50);   // half of 100
  EXPECT_EQ(sharing.Charge(of_first, 1), 110);  // the other half, and 60 alone
  const WaitSharing::Wait of_second = sharing.WaitOf(1);
  EXPECT_EQ(sharing.Charge(of_second, 0), 45);
  EXPECT_EQ(sharing.Charge(of_second, 1), 105);
  const WaitSharing::Wait of_late = sharing.WaitOf(2);
  EXPECT_EQ(of_late.first, 1U);
  EXPECT_EQ(sharing.Charge(of_late, 1), 60);
  EXPECT_EQ(sharing.WaitOf(3).first, 2U);  // nobody after it
  EXPECT_EQ(sharing.Totals(), (std::vector<int64_t>{95, 275}));
}

TEST(WaitSharingTest, NobodyIsChargedMoreThanItWasLate) {
  const WaitPlan plan = PlanOf({0, 0, 100}, {0, 0, 30});
  const WaitSharing sharing(plan, 0);
  EXPECT_EQ(sharing.Charge(sharing.WaitOf(0), 0), 30);
  EXPECT_EQ(sharing.Totals(), (std::vector<int64_t>{60}));
}

/// Pairs, by the definition: each piece of time between arrivals goes in equal parts to the late who are missing.
std::vector<int64_t> TotalsByPairs(const std::vector<int64_t>& arrivals, const WaitPlan& plan,
                                   const std::vector<WaitSharing::Late>& late) {
  std::vector<int64_t> totals(late.size());
  for (const int64_t arrival_ns : arrivals) {
    int64_t at_ns = arrival_ns;
    int64_t shared_ns = 0;
    for (size_t k = 0; k < late.size(); ++k) {
      const int64_t until_ns = arrivals[late[k].member];
      if (until_ns <= arrival_ns) continue;
      shared_ns += (until_ns - at_ns) / static_cast<int64_t>(late.size() - k);
      at_ns = until_ns;
      totals[k] += std::min(shared_ns, plan.nodes[static_cast<size_t>(late[k].node)].lateness_ns);
    }
  }
  return totals;
}

TEST(WaitSharingTest, TotalsAreThoseOfAllPairs) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const size_t count = 2 + random() % 60;
    const int64_t range = round % 3 == 0 ? 12 : 100'000;  // many arrive at once, or hardly any
    std::vector<int64_t> arrivals;
    std::vector<int64_t> lateness;
    for (size_t m = 0; m < count; ++m) {
      arrivals.push_back(static_cast<int64_t>(random()) % range);
      lateness.push_back(random() % 2 == 0 ? 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(range)) : 0);
    }
    const WaitPlan plan = PlanOf(arrivals, lateness);
    const WaitSharing sharing(plan, 0);
    EXPECT_EQ(sharing.Totals(), TotalsByPairs(arrivals, plan, sharing.late())) << "round " << round;
  }
}

}  // namespace
}  // namespace lockstep::analysis
