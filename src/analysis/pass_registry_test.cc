#include "analysis/pass_registry.h"

#include <gmock/gmock.h>

#include <set>
#include <stdexcept>
#include <vector>

#include "analysis/analyze.h"
#include "analysis/testing/analysed_rank.h"

namespace lockstep::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PassRegistryTest, NamesAreUniqueAndNeedsAreThere) {
  std::set<std::string_view> names;
  for (const Pass& pass : AllPasses()) {
    EXPECT_TRUE(names.insert(pass.info.name).second) << pass.info.name;
    EXPECT_EQ(FindPass(pass.info.name), &pass);
    EXPECT_EQ(pass.info.question.empty(), pass.info.kind == PassKind::kInternal) << pass.info.name;
    for (const std::string_view need : pass.info.needs) EXPECT_NE(FindPass(need), nullptr) << need;
  }
}

TEST(PassRegistryTest, NeedsComeAlongInRegistryOrder) {
  const auto passes = ResolvePasses({"stragglers", "ddp"});
  ASSERT_TRUE(passes);
  std::vector<std::string_view> names;
  for (const Pass* pass : *passes) names.push_back(pass->info.name);
  EXPECT_THAT(names, ElementsAre("collectives", "wait_states", "stragglers", "traffic", "groups", "ddp"));
}

TEST(PassRegistryTest, InternalPassesCannotBeAskedForAndLeaveNothing) {
  const auto refused = ResolvePasses({"traffic"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no pass is named 'traffic'"));
  model::Run run;
  const auto result = Analyze(&run, {}, {"ddp"});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->Has("ddp"));
  EXPECT_FALSE(result->Has("traffic"));
  EXPECT_FALSE(result->Has("collectives"));  // Matched to align clocks, and not asked for.
}

TEST(PassRegistryTest, PartialsTravelAsBytes) {
  testing::RunBuilder job;
  job.Rank(0).Op(1, "aten::mm", 0, 5).Kernel(7, "gemm", 0, 10).Kernel(8, "ncclKernel", 20, 20);
  const testing::AnalysedRank rank(job);
  for (const Pass& pass : AllPasses()) {
    if (pass.map == nullptr) continue;
    const std::string bytes = pass.partial_to_bytes(pass.map(rank.context));
    const auto back = pass.partial_from_bytes(bytes);
    ASSERT_TRUE(back) << pass.info.name;
    EXPECT_EQ(pass.partial_to_bytes(*back), bytes) << pass.info.name;
    EXPECT_FALSE(pass.partial_from_bytes(bytes + "x")) << pass.info.name;
  }
}

/// A pass that fails on one rank and makes what the others have.
struct Failing {
  static constexpr std::string_view kPass = "failing";
  std::vector<int> rows;
};

TEST(PassTest, ReducingPassGetsAnEmptyPartialForARankThatFailed) {
  const Pass pass = RankPass<Failing>({}, [](const RankContext&) { return Failing{{1, 2}}; });
  const RunContext shared;
  AnalysisResult result;
  model::Ledger ledger;
  PassContext context(shared, &result, &ledger);
  pass.finish(context, {std::any(Failing{{1, 2}}), std::any(), std::any(Failing{{3}})}, &result);
  EXPECT_THAT(result.Get<Failing>().rows, ElementsAre(1, 2, 3));
}

TEST(PassTest, APassThatThrowsCountsAsRunAndHasNoRows) {
  const Pass pass = RunPass<Failing>({}, [](PassContext&) -> Failing { throw std::runtime_error("no"); });
  const RunContext shared;
  AnalysisResult result;
  model::Ledger ledger;
  PassContext context(shared, &result, &ledger);
  EXPECT_THROW(pass.finish(context, {}, &result), std::runtime_error);
  EXPECT_TRUE(result.Has<Failing>());
  EXPECT_TRUE(result.Get<Failing>().rows.empty());
}

}  // namespace
}  // namespace lockstep::analysis
