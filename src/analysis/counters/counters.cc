#include "analysis/counters/counters.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/pass.h"
#include "analysis/quantiles.h"
#include "analysis/table.h"

namespace lockstep::analysis {
namespace {

double MeanOverTime(const model::CounterSeries& series) {
  const int64_t first_ns = series.time_ns[0];
  const int64_t last_ns = series.time_ns[series.size() - 1];
  double weight = 0;
  double sum = 0;
  for (size_t i = 0; i + 1 < series.size(); ++i) {
    // Ascending, so that this is right whatever the signs; as doubles wall clocks would be coarse.
    const auto held =
        static_cast<double>(static_cast<uint64_t>(series.time_ns[i + 1]) - static_cast<uint64_t>(series.time_ns[i]));
    weight += held;
    sum += held * series.value[i];
  }
  // All at one instant: none of them held.
  if (first_ns == last_ns || weight <= 0) return series.value[series.size() - 1];
  return sum / weight;
}

}  // namespace

std::vector<CounterRow> MapCounters(const RankContext& context) {
  std::vector<CounterRow> rows;
  for (const model::CounterSeries& series : context.trace().counters) {
    if (series.size() == 0) continue;
    CounterRow row;
    row.rank_index = context.rank_index;
    if (series.device) row.device = series.device->value;
    row.name = series.name;
    row.unit = series.unit;
    row.sample_count = series.size();
    row.mean = MeanOverTime(series);
    std::vector<double> sorted(series.value.begin(), series.value.end());
    std::sort(sorted.begin(), sorted.end());
    row.min = sorted.front();
    row.median = QuantileOfSorted(sorted, 0.5);
    row.p95 = QuantileOfSorted(sorted, 0.95);
    row.max = sorted.back();
    rows.push_back(std::move(row));
  }
  return rows;
}

ExtremesOverTime<double> ReduceCounter(const model::RankTrace& trace, const model::CounterSeries& series,
                                       size_t point_count) {
  if (series.size() == 0) return {};
  ExtremesBuilder<double> builder(series.time_ns[0], series.time_ns[series.size() - 1], point_count);
  for (size_t i = 0; i < series.size(); ++i) {
    builder.Add(series.time_ns[i], trace.clock.ToRun(series.time_ns[i]), series.value[i]);
  }
  return builder.Take();
}

std::vector<CounterBalanceRow> BalanceCounters(const model::Run& run, const std::vector<CounterRow>& rows) {
  std::map<std::pair<std::string_view, std::string_view>, CounterBalanceRow> by_name;
  for (const CounterRow& row : rows) {
    if (run.ranks[row.rank_index].window != run.ranks.front().window) continue;
    CounterBalanceRow& balance = by_name[{row.name, row.unit}];
    const bool is_first = balance.series_count++ == 0;
    balance.name = row.name;
    balance.unit = row.unit;
    balance.mean += row.mean;
    if (is_first || row.mean < balance.lowest_mean) {
      balance.lowest_mean = row.mean;
      balance.lowest_rank_index = row.rank_index;
      balance.lowest_device = row.device;
    }
    if (is_first || row.mean > balance.highest_mean) {
      balance.highest_mean = row.mean;
      balance.highest_rank_index = row.rank_index;
      balance.highest_device = row.device;
    }
  }
  std::vector<CounterBalanceRow> balances;
  for (auto& [name, balance] : by_name) {
    balance.mean /= static_cast<double>(balance.series_count);
    balances.push_back(std::move(balance));
  }
  return balances;
}

namespace {

std::vector<RowColumn<CounterRow>> CounterColumns() {
  using Row = CounterRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      Field<&Row::device>("device", "", "Device ordinal.", "it is of the process or its host"),
      Field<&Row::name>("name", "", "As the source calls it."),
      Field<&Row::unit>("unit", "", "Unit of the values.", "the source does not say"),
      Field<&Row::sample_count>("sample_count", "count", "Samples."),
      Field<&Row::mean>("mean", "`unit`", "Mean over time: a value counts for as long as it held."),
      Field<&Row::min>("min", "`unit`", "The smallest sample."),
      Field<&Row::median>("median", "`unit`", "Median of the samples."),
      Field<&Row::p95>("p95", "`unit`", "95th percentile of the samples."),
      Field<&Row::max>("max", "`unit`", "The largest sample."),
  };
}

std::vector<RowColumn<CounterBalanceRow>> CounterBalanceColumns() {
  using Row = CounterBalanceRow;
  constexpr const char* kNoDevice = "it is of the process or its host";
  return {
      Field<&Row::name>("name", "", "As the source calls it."),
      Field<&Row::unit>("unit", "", "Unit of the values.", "the source does not say"),
      Field<&Row::series_count>("series_count", "count", "Ranks and devices that have it."),
      Field<&Row::mean>("mean", "`unit`", "Mean of their means."),
      Field<&Row::lowest_mean>("lowest_mean", "`unit`", "The smallest of their means."),
      RankField<&Row::lowest_rank_index>("lowest_rank", "Rank that has it."),
      Field<&Row::lowest_device>("lowest_device", "", "Device that has it.", kNoDevice),
      Field<&Row::highest_mean>("highest_mean", "`unit`", "The largest of their means."),
      RankField<&Row::highest_rank_index>("highest_rank", "Rank that has it."),
      Field<&Row::highest_device>("highest_device", "", "Device that has it.", kNoDevice),
  };
}

}  // namespace

Pass CountersPass() {
  using Rows = std::vector<CounterRow>;
  return ReducingPass<Counters, Rows>(
      {.question = "How busy were the devices' parts, and what did the program count, where it was sampled?",
       .tables =
           {DeclareTable(
                "counters", "counters",
                "A hardware metric of one device of one rank, or what the rank's program counts, over the recording",
                &Counters::rows, CounterColumns()),
            DeclareTable("counter_balance", "counter_balance",
                         "One such counter over ranks and devices of the first window", &Counters::balance,
                         CounterBalanceColumns())}},
      MapCounters, [](PassContext& context, std::vector<Rows> ranks) {
        Counters all;
        for (Rows& rank : ranks) MoveRows(&rank, &all.rows);
        all.balance = BalanceCounters(context.run(), all.rows);
        return all;
      });
}

}  // namespace lockstep::analysis
