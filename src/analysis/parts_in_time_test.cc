#include "analysis/parts_in_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "analysis/findings.h"
#include "analysis/testing/collective_job.h"
#include "base/nanoseconds.h"

namespace lockstep::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kMs;
using testing::RunBuilder;

constexpr int64_t kDayNs = 86'400 * kSecondNs;

/// Ranks of 10 ms each, that begin at the times given.
model::Run RanksAt(const std::vector<int64_t>& begins_ns) {
  RunBuilder job;
  for (size_t r = 0; r < begins_ns.size(); ++r) {
    job.Rank(static_cast<int32_t>(r)).Kernel(7, "gemm", begins_ns[r], 10 * kMs);
  }
  model::Run run = job.Build();
  for (model::RankTrace& trace : run.ranks) trace.base_time_known = true;
  return run;
}

int64_t BeginOf(const model::RankTrace& trace) { return trace.clock.ToRun(*trace.first_ns); }

TEST(PartsInTimeTest, RanksThatOverlapThroughOthersAreOnePart) {
  const model::Run run = RanksAt({0, 16 * kMs, 8 * kMs});
  EXPECT_THAT(PartsInTime(run, 0, 3), ElementsAre(ElementsAre(0, 2, 1)));
}

TEST(PartsInTimeTest, RanksThatDoNotOverlapArePartsEarliestFirst) {
  const model::Run run = RanksAt({3 * kDayNs, 0, 3 * kDayNs + kMs});
  EXPECT_THAT(PartsInTime(run, 0, 3), ElementsAre(ElementsAre(1), ElementsAre(0, 2)));
}

TEST(PartsInTimeTest, ARankWhoseTimesCannotBeComparedIsNoPart) {
  model::Run run = RanksAt({kDayNs, 0});
  run.ranks[1].base_time_known = false;
  EXPECT_THAT(PartsInTime(run, 0, 2), ElementsAre(ElementsAre(0)));
}

TEST(PartsInTimeTest, OnlyGapsLongerThanAllThatIsRecordedAreClosed) {
  // 10 ms, a gap of 5 ms, 10 ms, a gap of days, 10 ms.
  model::Run run = RanksAt({0, 15 * kMs, 300 * kDayNs});
  CloseGaps(0, 3, &run);
  EXPECT_EQ(BeginOf(run.ranks[0]), 0);
  EXPECT_EQ(BeginOf(run.ranks[1]), 15 * kMs);
  EXPECT_GT(BeginOf(run.ranks[2]), 25 * kMs);
  EXPECT_LT(BeginOf(run.ranks[2]), 26 * kMs);
  ASSERT_EQ(run.ledger.entries().size(), 1u);
  EXPECT_EQ(run.ledger.entries()[0].code, "gaps_closed");
  EXPECT_THAT(run.ledger.entries()[0].message, ::testing::HasSubstr("3 traces in 3 parts"));
}

TEST(PartsInTimeTest, OneJobIsLeftAsItIs) {
  model::Run run = RanksAt({0, kMs});
  CloseGaps(0, 2, &run);
  EXPECT_EQ(BeginOf(run.ranks[1]), kMs);
  EXPECT_THAT(run.ledger.entries(), IsEmpty());
}

TEST(PartsInTimeTest, TheFirstFindingSaysThatItIsNotOneJob) {
  model::Run run = RanksAt({0, 300 * kDayNs});
  run.ranks[0].source = "a.json";
  const auto result = Analyze(&run, {}, {});
  ASSERT_TRUE(result);
  ASSERT_FALSE(result->findings.empty());
  const Finding& first = result->findings.front();
  EXPECT_EQ(first.id, "not_one_job");
  EXPECT_EQ(first.severity, FindingSeverity::kCritical);
  EXPECT_THAT(first.advice, ::testing::Contains(::testing::HasSubstr("lockstep analyze a.json")));
  EXPECT_LT(result->job_span_ns, 30 * kMs);
}

}  // namespace
}  // namespace lockstep::analysis
