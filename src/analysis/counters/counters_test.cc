#include "analysis/counters/counters.h"

#include <gmock/gmock.h>

#include <initializer_list>
#include <utility>

namespace lockstep::analysis {
namespace {

using ::testing::ElementsAre;
using TimedValues = std::initializer_list<std::pair<int64_t, double>>;

model::CounterSeries Series(const std::string& name, TimedValues samples, std::optional<int32_t> device = {}) {
  model::CounterSeries series;
  series.name = name;
  series.unit = "%";
  if (device) series.device = DeviceOrdinal{*device};
  for (const auto& [time_ns, value] : samples) {
    series.time_ns.push_back(time_ns);
    series.value.push_back(value);
  }
  return series;
}

std::vector<CounterRow> RowsOf(const model::Run& run) {
  RunContext shared{.run = &run, .options = {}, .is_communication = {}};
  std::vector<CounterRow> rows;
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    RankContext context;
    context.shared = &shared;
    context.rank_index = i;
    for (CounterRow& row : MapCounters(context)) rows.push_back(std::move(row));
  }
  return rows;
}

TEST(CountersTest, AValueCountsForAsLongAsItHeld) {
  model::Run run;
  run.ranks.emplace_back().counters.push_back(Series("SMs Active", {{0, 100}, {10, 0}, {40, 50}}, 1));
  const std::vector<CounterRow> rows = RowsOf(run);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_DOUBLE_EQ(rows[0].mean, 25) << "100 for 10 ns, 0 for 30 ns; the last holds for no known time";
  EXPECT_DOUBLE_EQ(rows[0].min, 0);
  EXPECT_DOUBLE_EQ(rows[0].median, 50);
  EXPECT_DOUBLE_EQ(rows[0].p95, 95);
  EXPECT_DOUBLE_EQ(rows[0].max, 100);
  EXPECT_EQ(rows[0].sample_count, 3u);
  EXPECT_EQ(rows[0].device, 1);
}

TEST(CountersTest, ReducedToFewPointsNoPeakIsLostAndTimesAreThoseOfTheJob) {
  model::RankTrace trace;
  trace.clock.offset_ns = -1000;
  const model::CounterSeries series = Series("SMs Active", {{0, 5}, {1, 90}, {49, 1}, {50, 7}, {99, 8}});
  const ExtremesOverTime<double> reduced = ReduceCounter(trace, series, 2);
  EXPECT_THAT(reduced.time_ns, ElementsAre(1000, 1050));
  EXPECT_THAT(reduced.min, ElementsAre(1, 7));
  EXPECT_THAT(reduced.max, ElementsAre(90, 8));
  EXPECT_THAT(ReduceCounter(trace, series, 100).max, ElementsAre(5, 90, 1, 7, 8));
  EXPECT_TRUE(ReduceCounter(trace, Series("none", {}), 2).time_ns.empty());
}

TEST(CountersTest, TimesFarApartDoNotOverflow) {
  const model::CounterSeries series = Series("wild", {{INT64_MIN, 1}, {INT64_MAX, 2}});
  EXPECT_THAT(ReduceCounter({}, series, 2).max, ElementsAre(1, 2));
}

TEST(CountersTest, OneSampleAndSamplesOfOneInstantHaveTheirLastValue) {
  model::Run run;
  auto& counters = run.ranks.emplace_back().counters;
  counters.push_back(Series("one", {{5, 7}}));
  counters.push_back(Series("none", {}));
  counters.push_back(Series("same", {{5, 1}, {5, 3}}));
  const std::vector<CounterRow> rows = RowsOf(run);
  ASSERT_EQ(rows.size(), 2u) << "a series without samples says nothing";
  EXPECT_DOUBLE_EQ(rows[0].mean, 7);
  EXPECT_DOUBLE_EQ(rows[1].mean, 3);
  EXPECT_EQ(rows[0].device, std::nullopt);
}

TEST(CountersTest, TheBalanceNamesWhoHasLeastAndMost) {
  model::Run run;
  for (const double value : {60.0, 20.0, 70.0}) {
    run.ranks.emplace_back().counters.push_back(Series("SMs Active", {{0, value}, {10, value}}, 0));
  }
  run.ranks.back().counters.push_back(Series("SMs Active", {{0, 10}, {10, 10}}, 1));
  run.ranks.emplace_back().counters.push_back(Series("SMs Active", {{0, 1}, {10, 1}}, 0));
  run.ranks.back().window = 1;
  const std::vector<CounterBalanceRow> rows = BalanceCounters(run, RowsOf(run));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].series_count, 4u) << "a later window is another recording";
  EXPECT_DOUBLE_EQ(rows[0].mean, 40);
  EXPECT_DOUBLE_EQ(rows[0].lowest_mean, 10);
  EXPECT_EQ(rows[0].lowest_rank_index, 2u);
  EXPECT_EQ(rows[0].lowest_device, 1);
  EXPECT_EQ(rows[0].highest_rank_index, 2u);
  EXPECT_EQ(rows[0].highest_device, 0);
}

}  // namespace
}  // namespace lockstep::analysis
