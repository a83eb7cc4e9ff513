// The counters of the page: rows of the pass, and each counter over time.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "analysis/counters/counters.h"
#include "present/page/analyze_tables.h"

namespace lockstep::page {
namespace {

using analysis::CounterRow;
using report::JsonRow;

/// All; or of each counter as many as there is room for of those whose means are the lowest, and the highest.
std::vector<size_t> KeptRows(const std::vector<CounterRow>& rows, size_t limit) {
  std::vector<size_t> kept(rows.size());
  std::iota(kept.begin(), kept.end(), size_t{0});
  if (rows.size() <= limit) return kept;
  std::map<std::pair<std::string_view, std::string_view>, std::vector<size_t>> by_name;
  for (const size_t i : kept) by_name[{rows[i].name, rows[i].unit}].push_back(i);
  const size_t each = std::max<size_t>(limit / by_name.size(), 2);
  kept.clear();
  for (auto& [name, of_name] : by_name) {
    std::stable_sort(of_name.begin(), of_name.end(), [&](size_t a, size_t b) { return rows[a].mean < rows[b].mean; });
    for (size_t i = 0; i < of_name.size(); ++i) {
      if (i < each / 2 || i + (each - each / 2) >= of_name.size()) kept.push_back(of_name[i]);
    }
  }
  std::sort(kept.begin(), kept.end());
  kept.resize(std::min(kept.size(), limit));  // There may be as many names.
  return kept;
}

/// The series that rows are of: a rank's rows are in the order of its series, without those that are empty.
std::vector<const model::CounterSeries*> SeriesOf(const model::Run& run, const std::vector<CounterRow>& rows) {
  std::vector<const model::CounterSeries*> series(rows.size());
  for (size_t i = 0; i < rows.size();) {
    const size_t rank_index = rows[i].rank_index;
    for (const model::CounterSeries& of_rank : run.ranks[rank_index].counters) {
      if (of_rank.size() > 0 && i < rows.size() && rows[i].rank_index == rank_index) series[i++] = &of_rank;
    }
    // Of a rank whose trace is not held there are rows alone.
    while (i < rows.size() && rows[i].rank_index == rank_index) ++i;
  }
  return series;
}

void AddSeries(const analysis::ExtremesOverTime<double>& series, int64_t origin_ns, JsonRow* json) {
  json->Key("time_ns").StartArray();
  for (const int64_t time_ns : series.time_ns) json->Int(time_ns - origin_ns);
  json->EndArray().Key("low").List(series.min).Key("high").List(series.max);
}

}  // namespace

void AddCounters(const PageModel& model, JsonRow* json, std::vector<Reduction>* reductions) {
  const std::vector<CounterRow>& rows = model.result().Get<analysis::Counters>().rows;
  const std::vector<const model::CounterSeries*> series = SeriesOf(model.run(), rows);
  const std::vector<size_t> kept = KeptRows(rows, model.limits.table_rows);
  const size_t points = PointsPerSeries(model.limits.counter_points, kept.size());
  bool cut = false;
  json->Key("counters").StartArray();
  for (const size_t i : kept) {
    const CounterRow& row = rows[i];
    json->StartObject().Key("rank_index").Uint(row.rank_index).Key("device").Optional(row.device);
    json->Key("name").Text(row.name).Key("unit").TextOrNull(row.unit).Key("sample_count").Uint(row.sample_count);
    json->Key("mean").Double(row.mean).Key("min").Double(row.min).Key("median").Double(row.median);
    json->Key("p95").Double(row.p95).Key("max").Double(row.max);
    cut = cut || row.sample_count > points;
    AddSeries(series[i] == nullptr ? analysis::ExtremesOverTime<double>()
                                   : analysis::ReduceCounter(model.run().ranks[row.rank_index], *series[i], points),
              model.rank_origin_ns[row.rank_index], json);
    json->EndObject();
  }
  json->EndArray();
  if (kept.size() < rows.size()) {
    reductions->push_back({"counters", fmt::format("{} of {} counters: of each those of the ranks with the lowest and "
                                                   "the highest means",
                                                   kept.size(), rows.size())});
  }
  if (cut && points < kMostSeriesPoints) {
    reductions->push_back({"counter_series", fmt::format("counters over time: the least and the most of each of {} "
                                                         "stretches of time",
                                                         points)});
  }
}

}  // namespace lockstep::page
