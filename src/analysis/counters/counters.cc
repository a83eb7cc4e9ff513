#include "analysis/counters/counters.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/pass.h"
#include "analysis/quantiles.h"

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

Pass CountersPass() {
  using Rows = std::vector<CounterRow>;
  return ReducingPass<Counters, Rows>(
      {.question = "How busy were the devices' parts, and what did the program count, where it was sampled?"},
      MapCounters, [](PassContext& context, std::vector<Rows> ranks) {
        Counters all;
        for (Rows& rank : ranks) MoveRows(&rank, &all.rows);
        all.balance = BalanceCounters(context.run(), all.rows);
        return all;
      });
}

}  // namespace lockstep::analysis
