#include "present/page/depth_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "analysis/collectives.h"
#include "analysis/parallelism/device_peak.h"
#include "analysis/wait_states/chain_text.h"
#include "analysis/wait_states/wait_states.h"
#include "analysis/what_if/pipeline_bubbles.h"
#include "analysis/what_if/what_if.h"
#include "base/cell.h"
#include "present/report/flat_table.h"
#include "present/report/format.h"
#include "present/report/job_facts.h"

namespace lockstep::page {
namespace {

using analysis::RootCauseRow;
using analysis::StragglerStudy;
using analysis::StudyShare;
using report::JsonRow;

constexpr size_t kMostSteps = 1'000;  ///< Of a cause, of a simulation.
constexpr size_t kMostRanksOfLink = 256;

void AddCause(const PageModel& model, const RootCauseRow& cause, JsonRow* json) {
  const analysis::Collectives& collectives = model.result().Get<analysis::Collectives>();
  json->StartObject().Key("cause").Text(RootCauseName(cause.cause)).Key("rank_index").Optional(cause.rank_index);
  json->Key("rank_count").Uint(cause.rank_indices.size()).Key("rank_indices").StartArray();
  for (size_t i = 0; i < cause.rank_indices.size() && i < kMostRanksOfLink; ++i) json->Uint(cause.rank_indices[i]);
  json->EndArray().Key("name").TextOrNull(cause.name).Key("own_ns").Int(cause.own_ns);
  json->Key("peers_ns").Int(cause.peers_ns).Key("direct_wait_ns").Int(cause.direct_wait_ns);
  json->Key("propagated_wait_ns").Int(cause.propagated_wait_ns).Key("wait_ratio").Double(cause.wait_ratio);
  json->Key("collective_count").Uint(cause.collective_count).Key("delay_ns").Int(cause.delay_ns);
  json->Key("pattern").Text(WaitPatternName(cause.pattern)).Key("pattern_text").Text(PatternText(cause));
  json->Key("period_steps").Optional(cause.period_steps).Key("step_count").Int(cause.step_count);
  json->Key("late_step_count").Uint(cause.steps.size()).Key("steps").StartArray();
  for (size_t i = 0; i < cause.steps.size() && i < kMostSteps; ++i) json->Int(cause.steps[i]);
  json->EndArray().Key("text").Text(CauseText(model.run(), cause));
  json->Key("chains").Each(cause.chains, [&](const analysis::WaitChain& chain) {
    json->Key("rank_index").Uint(chain.victim_rank_index).Key("wait_ns").Int(chain.wait_ns);
    json->Key("text").Text(ChainText(model.run(), collectives, cause, chain)).Key("hops").StartArray();
    for (const analysis::WaitHop& hop : chain.hops) {
      const analysis::CollectiveInstance& instance = collectives.instances[hop.instance];
      json->StartObject().Key("group").Text(instance.group).Key("sequence").Int(instance.sequence);
      json->Key("name").Text(instance.name).Key("rank").Int(model.run().ranks[hop.victim_rank_index].rank.value);
      json->Key("late_rank").Int(model.run().ranks[hop.late_rank_index].rank.value);
      json->Key("wait_ns").Int(hop.wait_ns).EndObject();
    }
    json->EndArray();
  });
  json->EndObject();
}

void AddShares(const char* key, const std::vector<StudyShare>& shares, JsonRow* json) {
  json->Key(key).Each(shares, [&](const StudyShare& share) {
    json->Key("name").Text(share.name).Key("slowdown").Double(share.slowdown);
  });
}

void AddStudy(const std::optional<StragglerStudy>& study, JsonRow* json) {
  json->Key("study");
  if (!study) {
    json->Null();
    return;
  }
  json->StartObject();
  json->Key("slowdown").Double(study->slowdown).Key("launch_slowdown").Double(study->launch_slowdown);
  json->Key("slow_workers_ratio").Optional(study->slow_workers_ratio);
  json->Key("last_stage_ratio").Optional(study->last_stage_ratio);
  AddShares("by_stage", study->by_stage, json);
  AddShares("by_dp_rank", study->by_data_rank, json);
  AddShares("by_operation", study->by_operation, json);
  json->Key("no_delay_step_ns").Int(study->no_delay_ns).Key("ideal_step_ns").Int(study->ideal_ns);
  json->Key("last_stage").Int(study->last_stage).Key("slow_workers").List(study->slow_workers).EndObject();
}

void AddSimulation(const PageModel& model, JsonRow* json, std::vector<Reduction>* reductions) {
  const analysis::WhatIf& what_if = model.result().Get<analysis::WhatIf>();
  json->Key("observed_step_ns").Int(what_if.observed_step_ns).Key("simulated_step_ns").Int(what_if.simulated_step_ns);
  json->Key("error_ratio").Double(what_if.error_ratio).Key("replayed_step_ns").Optional(what_if.replayed_step_ns);
  json->Key("levers").StartArray();
  for (size_t i = 0; i < what_if.levers.size() && i < model.limits.name_rows; ++i) {
    const analysis::Lever& lever = what_if.levers[i];
    json->StartObject().Key("id").Text(lever.id).Key("title").Text(lever.title).Key("ranks").List(lever.ranks);
    json->Key("step_ns").Int(lever.step_ns).Key("gain_ns").Int(lever.gain_ns);
    json->Key("gain_ratio").Double(lever.gain_ratio).EndObject();
  }
  json->EndArray().Key("lever_count").Uint(what_if.levers.size());
  json->Key("step_count").Uint(what_if.steps.size()).Key("steps").StartArray();
  for (size_t i = 0; i < what_if.steps.size() && i < kMostSteps; ++i) {
    const analysis::WhatIfStep& step = what_if.steps[i];
    json->StartObject().Key("step").Int(step.step).Key("observed_ns").Int(step.observed_ns);
    json->Key("simulated_ns").Int(step.simulated_ns).Key("ideal_ns").Optional(step.ideal_ns).EndObject();
  }
  json->EndArray();
  if (what_if.steps.size() > kMostSteps) {
    reductions->push_back(
        {"what_if_steps", fmt::format("what if: the first {} of {} steps one by one; means are over all",
                                      report::FormatCount(kMostSteps), report::FormatCount(what_if.steps.size()))});
  }
  AddStudy(what_if.study, json);
}

void AddBubbles(const PageModel& model, JsonRow* json, std::vector<Reduction>* reductions) {
  const analysis::Bubbles& bubbles = model.result().Get<analysis::Bubbles>();
  json->Key("steps").StartArray();
  for (size_t i = 0; i < bubbles.steps.size() && i < model.limits.table_rows; ++i) {
    const analysis::PipelineStepRow& step = bubbles.steps[i];
    json->StartObject().Key("step").Int(step.step).Key("dp_rank").Int(step.data_rank);
    json->Key("stage_count").Int(step.stage_count).Key("micro_batch_count").Int(step.micro_batch_count);
    json->Key("iteration_ns").Int(step.iteration_ns).Key("bubble_ratio").Double(step.bubble_ratio);
    json->Key("ideal_bubble_ratio").Double(step.ideal_bubble_ratio).Key("warm_up").Bool(step.warm_up).EndObject();
  }
  json->EndArray().Key("stages").StartArray();
  for (size_t i = 0; i < bubbles.stages.size() && i < model.limits.table_rows; ++i) {
    const analysis::BubbleRow& stage = bubbles.stages[i];
    json->StartObject().Key("step").Int(stage.step).Key("dp_rank").Int(stage.data_rank).Key("stage").Int(stage.stage);
    json->Key("window_ns").Int(stage.window_ns).Key("busy_ns").Int(stage.busy_ns);
    json->Key("bubble_ratio").Double(stage.bubble_ratio).Key("memory_bytes").Optional(stage.memory_bytes).EndObject();
  }
  json->EndArray();
  if (std::max(bubbles.steps.size(), bubbles.stages.size()) > model.limits.table_rows) {
    reductions->push_back({"bubbles", fmt::format("bubbles: the first {} rows; --json has all",
                                                  report::FormatCount(model.limits.table_rows))});
  }
}

double Weight(const Cell& cell) {
  if (const auto* number = std::get_if<int64_t>(&cell)) return static_cast<double>(*number);
  return 0;
}

/// Rows of the table that the page takes, in the table's order: those with most of `weight` where there are too many.
std::vector<size_t> HeaviestRows(const report::FlatTable& table, std::string_view weight, size_t most) {
  std::vector<size_t> rows(table.row_count);
  std::iota(rows.begin(), rows.end(), size_t{0});
  if (rows.size() <= most) return rows;
  const auto column =
      static_cast<size_t>(std::find(table.columns.begin(), table.columns.end(), weight) - table.columns.begin());
  std::vector<double> weights;
  for (size_t row = 0; row < table.row_count; ++row) {
    std::vector<Cell> cells;
    table.fill(row, &cells);
    weights.push_back(column < cells.size() ? Weight(cells[column]) : 0);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  rows.resize(most);
  std::sort(rows.begin(), rows.end());
  return rows;
}

void AddFlatTable(const PageModel& model, const report::FlatTable& table, std::string_view weight, JsonRow* json,
                  std::vector<Reduction>* reductions) {
  json->Key(table.name);
  if (!model.result().Has(table.pass)) {
    json->Null();
    return;
  }
  std::map<std::pair<int64_t, int64_t>, size_t> rank_indices;
  for (size_t i = 0; i < model.run().ranks.size(); ++i) {
    rank_indices[{model.run().ranks[i].rank.value, model.run().ranks[i].window}] = i;
  }
  const bool of_rank = !table.columns.empty() && table.columns.front() == "rank" && table.columns[1] == "window";
  const std::vector<size_t> rows = HeaviestRows(table, weight, model.limits.table_rows);
  json->StartArray();
  for (const size_t row : rows) {
    std::vector<Cell> cells;
    table.fill(row, &cells);
    json->StartObject();
    if (of_rank) {
      json->Key("rank_index").Uint(rank_indices.at({std::get<int64_t>(cells[0]), std::get<int64_t>(cells[1])}));
    }
    for (size_t i = of_rank ? 2 : 0; i < cells.size(); ++i) json->Key(table.columns[i]).Value(cells[i]);
    json->EndObject();
  }
  json->EndArray();
  if (rows.size() < table.row_count) {
    reductions->push_back(
        {std::string(table.name),
         fmt::format("{}: the {} rows with most {} of {}; --json and --csv have all", table.name,
                     report::FormatCount(rows.size()), weight, report::FormatCount(table.row_count))});
  }
}

/// Of the devices that are in the table of peaks: what the roofline's roof is made of.
void AddPeaks(const PageModel& model, JsonRow* json) {
  std::set<std::string> devices;
  for (const model::RankTrace& trace : model.run().ranks) devices.insert(report::DeviceOf(trace).name);
  json->Key("device_peaks").StartArray();
  for (const std::string& device : devices) {
    const analysis::DevicePeak* peak = device.empty() ? nullptr : analysis::FindDevicePeak(device);
    if (peak == nullptr) continue;
    json->StartObject().Key("device").Text(device).Key("bandwidth_bytes_per_s").Double(peak->bandwidth_bytes_per_s);
    json->Key("source").Text(peak->source).Key("flops_per_s").StartObject();
    using analysis::Precision;
    for (const Precision precision : {Precision::kBf16, Precision::kFp16, Precision::kTf32, Precision::kFp32}) {
      if (const auto flops = peak->FlopsPerSecond(precision)) json->Key(PrecisionName(precision)).Double(*flops);
    }
    json->EndObject().EndObject();
  }
  json->EndArray();
}

}  // namespace

void AddWaitStates(const PageModel& model, JsonRow* json, std::vector<Reduction>* reductions) {
  json->Key("wait_states");
  if (!model.result().Has<analysis::WaitStates>()) {
    json->Null();
    return;
  }
  const analysis::WaitStates& waits = model.result().Get<analysis::WaitStates>();
  json->StartObject().Key("wait_ns").Int(waits.wait_ns).Key("text").Text(WaitVerdictText(model.run(), waits));
  json->Key("culprits").Each(waits.culprits, [&](const analysis::WaitCulprit& culprit) {
    json->Key("rank_index").Optional(culprit.rank_index);
    json->Key("wait_ns").Int(culprit.wait_ns).Key("wait_ratio").Double(culprit.wait_ratio);
  });
  json->Key("states").Each(waits.rows, [&](const analysis::WaitStateRow& row) {
    json->Key("rank_index").Uint(row.rank_index).Key("kind").Text(WaitStateKindName(row.kind));
    json->Key("count").Uint(row.count).Key("wait_ns").Int(row.wait_ns);
  });
  json->Key("causes").StartArray();
  int64_t rest_ns = 0;
  for (size_t i = 0; i < waits.causes.size(); ++i) {
    if (i < model.limits.causes) {
      AddCause(model, waits.causes[i], json);
    } else {
      rest_ns += waits.causes[i].direct_wait_ns + waits.causes[i].propagated_wait_ns;
    }
  }
  json->EndArray().Key("cause_count").Uint(waits.causes.size()).Key("rest_causes_ns").Int(rest_ns).EndObject();
  if (waits.causes.size() > model.limits.causes) {
    reductions->push_back(
        {"wait_causes", fmt::format("causes of waiting: the {} with most of {}; the others hold {}",
                                    report::FormatCount(model.limits.causes), report::FormatCount(waits.causes.size()),
                                    report::FormatDuration(rest_ns))});
  }
}

void AddWhatIf(const PageModel& model, JsonRow* json, std::vector<Reduction>* reductions) {
  json->Key("what_if");
  if (model.result().Has<analysis::WhatIf>()) {
    json->StartObject();
    AddSimulation(model, json, reductions);
    json->EndObject();
  } else {
    json->Null();
  }
  json->Key("bubbles");
  if (model.result().Has<analysis::Bubbles>()) {
    json->StartObject();
    AddBubbles(model, json, reductions);
    json->EndObject();
  } else {
    json->Null();
  }
}

void AddParallelism(const PageModel& model, JsonRow* json, std::vector<Reduction>* reductions) {
  /// The tables, and by which column rows are chosen when there are too many.
  static constexpr std::pair<std::string_view, std::string_view> kTables[] = {
      {"groups", "communication_ns"},
      {"group_operations", "duration_ns"},
      {"ddp", "communication_ns"},
      {"ddp_buckets", "mean_duration_ns"},
      {"fsdp", "gather_ns"},
      {"pipeline", "bubble_ns"},
      {"flops", "time_ns"},
      {"flops_by_operator", "time_ns"},
      {"regions", "total_ns"},
      {"region_balance", "mean_total_ns"},
      // Rooflines come in the order of launches, the longest first.
      {"kernel_launches", "duration_ns"},
      {"kernel_rooflines", "duration"},
      {"kernel_sums", "total_ns"},
      {"stage_scopes", "total_ns"},
      {"stage_shares", "job_ns"},
      {"stage_agreement", "trace_ns"},
      {"fabric", "transfer_ns"},
  };
  const std::vector<report::FlatTable> all =
      report::FlatTables(model.run(), model.result(), analysis::ColumnPlace::kOnlyInJson);
  for (const auto& [name, weight] : kTables) {
    const auto table =
        std::find_if(all.begin(), all.end(), [&, wanted = name](const auto& each) { return each.name == wanted; });
    if (table != all.end()) AddFlatTable(model, *table, weight, json, reductions);
  }
  AddPeaks(model, json);
}

}  // namespace lockstep::page
