#include "present/page/analyze_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/bandwidth.h"
#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "analysis/idle.h"
#include "analysis/imbalance.h"
#include "analysis/launch.h"
#include "analysis/memory.h"
#include "analysis/memory_series.h"
#include "analysis/stragglers.h"
#include "analysis/wait_pairs.h"
#include "present/report/format.h"

namespace lockstep::page {
namespace {

using report::JsonRow;

void AddBreakdown(const PageModel& model, JsonRow* json) {
  json->Key("breakdown").Each(model.result().Get<analysis::Breakdown>().ranks, [&](const analysis::BreakdownRow& row) {
    json->Key("rank_index").Uint(row.rank_index).Key("basis").Text(analysis::BasisName(row.basis));
    json->Key("span_ns").Int(row.span_ns).Key("busy_ns").Int(row.busy_ns).Key("compute_ns").Int(row.compute_ns);
    json->Key("communication_ns").Int(row.communication_ns);
    json->Key("exposed_communication_ns").Int(row.exposed_communication_ns);
    json->Key("overlapped_communication_ns").Int(row.overlapped_communication_ns);
    json->Key("memory_ns").Int(row.memory_ns).Key("exposed_memory_ns").Int(row.exposed_memory_ns);
    json->Key("idle_ns").Int(row.idle_ns);
  });
}

void AddIdle(const PageModel& model, JsonRow* json) {
  std::map<size_t, analysis::IdleRow> by_rank;
  for (const analysis::IdleRow& row : model.result().Get<analysis::Idle>().rows) {
    analysis::IdleRow& sum = by_rank[row.rank_index];
    sum.host_wait_ns += row.host_wait_ns;
    sum.kernel_wait_ns += row.kernel_wait_ns;
    sum.other_ns += row.other_ns;
  }
  json->Key("idle").StartArray();
  for (const auto& [rank_index, row] : by_rank) {
    json->StartObject().Key("rank_index").Uint(rank_index).Key("host_wait_ns").Int(row.host_wait_ns);
    json->Key("kernel_wait_ns").Int(row.kernel_wait_ns).Key("other_ns").Int(row.other_ns).EndObject();
  }
  json->EndArray();
  json->Key("idle_host").Each(model.result().Get<analysis::Idle>().host, [&](const analysis::IdleHostRow& row) {
    json->Key("rank_index").Uint(row.rank_index).Key("runtime_ns").Int(row.runtime_ns);
    json->Key("data_loader_ns").Int(row.data_loader_ns).Key("operator_ns").Int(row.operator_ns);
    json->Key("unknown_ns").Int(row.unknown_ns);
  });
}

void AddImbalance(const PageModel& model, JsonRow* json) {
  json->Key("imbalance").Each(model.result().Get<analysis::Imbalance>().rows, [&](const analysis::ImbalanceRow& row) {
    json->Key("quantity").Text(row.quantity).Key("mean").Double(row.mean).Key("min").Double(row.min);
    json->Key("max").Double(row.max).Key("ratio").Optional(row.ratio);
    json->Key("max_rank_index").Uint(row.max_rank_index).Key("min_rank_index").Uint(row.min_rank_index);
  });
}

void AddLaunch(const PageModel& model, JsonRow* json) {
  json->Key("launch").Each(model.result().Get<analysis::Launch>().rows, [&](const analysis::LaunchRow& row) {
    json->Key("rank_index").Uint(row.rank_index).Key("launch_count").Uint(row.launch_count);
    json->Key("median_delay_ns").Optional(row.median_delay_ns).Key("max_delay_ns").Int(row.max_delay_ns);
    json->Key("long_delay_count").Uint(row.long_delay_count).Key("short_kernel_count").Uint(row.short_kernel_count);
    json->Key("long_call_count").Uint(row.long_call_count);
  });
}

void AddStragglers(const PageModel& model, JsonRow* json) {
  json->Key("stragglers").Each(model.result().Get<analysis::Stragglers>().rows, [&](const analysis::StragglerRow& row) {
    json->Key("rank_index").Uint(row.rank_index).Key("collective_count").Uint(row.collective_count);
    json->Key("last_count").Uint(row.last_count).Key("wait_ns").Int(row.wait_ns);
    json->Key("wait_given_ns").Int(row.wait_given_ns).Key("delay_ns").Int(row.delay_ns);
    json->Key("last_ratio").Double(row.last_ratio).Key("role").Text(WaitRoleName(row.role));
    json->Key("chronic").Bool(row.chronic);
    json->Key("late_step_count").Int(row.late_step_count).Key("step_count").Int(row.step_count);
    json->Key("activities").Each(row.activities, [&](const analysis::LateActivity& activity) {
      json->Key("cause").Text(analysis::LateCauseName(activity.cause)).Key("name").Text(activity.name);
      json->Key("excess_ns").Int(activity.excess_ns);
    });
  });
}

void AddWaits(const PageModel& model, JsonRow* json, std::vector<Reduction>* reductions) {
  std::vector<analysis::WaitPair> pairs;
  if (model.result().Has<analysis::Stragglers>())
    pairs = analysis::ComputeWaitPairs(model.result().Get<analysis::Collectives>());
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const analysis::WaitPair& a, const analysis::WaitPair& b) { return a.wait_ns > b.wait_ns; });
  if (pairs.size() > model.limits.wait_pairs) {
    double all_ns = 0;
    double kept_ns = 0;
    for (size_t i = 0; i < pairs.size(); ++i) {
      all_ns += static_cast<double>(pairs[i].wait_ns);
      if (i < model.limits.wait_pairs) kept_ns += static_cast<double>(pairs[i].wait_ns);
    }
    reductions->push_back(
        {"wait_pairs", fmt::format("who waits for whom: the {} largest of {} pairs of ranks; they "
                                   "hold {} of the waiting",
                                   report::FormatCount(model.limits.wait_pairs), report::FormatCount(pairs.size()),
                                   report::FormatPercent(all_ns > 0 ? kept_ns / all_ns : 1))});
    pairs.resize(model.limits.wait_pairs);
  }
  json->Key("waits").Each(pairs, [&](const analysis::WaitPair& pair) {
    json->Key("victim_rank_index").Uint(pair.victim_rank_index);
    json->Key("culprit_rank_index").Uint(pair.culprit_rank_index).Key("wait_ns").Int(pair.wait_ns);
    json->Key("count").Uint(pair.count);
  });
}

void AddBandwidth(const PageModel& model, JsonRow* json) {
  const auto rows = analysis::ComputeBandwidth(model.result().Get<analysis::Collectives>());
  json->Key("bandwidth").Each(rows, [&](const analysis::BandwidthRow& row) {
    json->Key("name").Text(row.name).Key("group_size").Optional(row.group_size);
    json->Key("bytes").Int(row.bytes).Key("count").Uint(row.count).Key("busbw_bytes_per_s").List(row.busbw_bytes_per_s);
    json->Key("algbw_median_bytes_per_s").Double(row.algbw_median_bytes_per_s);
  });
}

void AddMemory(const PageModel& model, JsonRow* json) {
  json->Key("memory").Each(model.result().Get<analysis::Memory>().rows, [&](const analysis::MemoryRow& row) {
    json->Key("rank_index").Uint(row.rank_index).Key("device").Int(row.device);
    json->Key("peak_allocated_bytes").Optional(row.peak_allocated_bytes);
    json->Key("peak_reserved_bytes").Optional(row.peak_reserved_bytes);
    json->Key("device_memory_bytes").Optional(row.device_memory_bytes);
    json->Key("allocation_count").Uint(row.allocation_count).Key("net_bytes").Int(row.net_bytes);
  });
}

void AddNumbers(const char* key, const std::vector<int64_t>& values, int64_t less, JsonRow* json) {
  json->Key(key).StartArray();
  for (const int64_t value : values) json->Int(value - less);
  json->EndArray();
}

}  // namespace

void AddTimeTables(const PageModel& model, JsonRow* json) {
  AddBreakdown(model, json);
  AddIdle(model, json);
  AddImbalance(model, json);
  AddLaunch(model, json);
}

void AddCommunicationTables(const PageModel& model, JsonRow* json, std::vector<Reduction>* reductions) {
  AddStragglers(model, json);
  AddWaits(model, json, reductions);
  AddBandwidth(model, json);
}

void AddMemoryTables(const PageModel& model, JsonRow* json, std::vector<Reduction>* reductions) {
  AddMemory(model, json);
  const size_t points = PointsPerSeries(model.limits.memory_points, model.run().ranks.size());
  bool cut = false;
  json->Key("memory_series").StartArray();
  for (size_t rank = 0; model.result().Has<analysis::Memory>() && rank < model.run().ranks.size(); ++rank) {
    cut = cut || model.run().ranks[rank].memory.size() > points;
    for (const analysis::MemorySeries& series : analysis::ComputeMemorySeries(model.run(), rank, points)) {
      json->StartObject().Key("rank_index").Uint(rank).Key("device").Int(series.device);
      AddNumbers("time_ns", series.bytes.time_ns, model.rank_origin_ns[rank], json);
      AddNumbers("min_bytes", series.bytes.min, 0, json);
      AddNumbers("max_bytes", series.bytes.max, 0, json);
      json->EndObject();
    }
  }
  json->EndArray();
  if (cut && points < kMostSeriesPoints) {
    reductions->push_back({"memory_series", fmt::format("memory over time: the least and the most of each of {} "
                                                        "stretches of time per rank",
                                                        points)});
  }
}

}  // namespace lockstep::page
