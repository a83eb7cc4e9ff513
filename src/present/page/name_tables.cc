#include <fmt/format.h>

#include <cmath>
#include <string>

#include "analysis/kernels.h"
#include "analysis/name_totals.h"
#include "analysis/operators.h"
#include "present/page/analyze_tables.h"
#include "present/report/format.h"

namespace lockstep::page {
namespace {

using analysis::RankSpread;
using report::JsonRow;

void AddSpread(const PageModel& model, const RankSpread& spread, JsonRow* json) {
  json->Key("rank_quantiles_ns").StartArray();
  for (const double value : spread.quantiles_ns) json->Int(std::llround(value));
  json->EndArray().Key("min_rank_index").Uint(spread.min_rank_index).Key("max_rank_index").Uint(spread.max_rank_index);
  json->Key("rank_count").Uint(spread.by_rank.size()).Key("by_rank");
  const size_t rank_count = model.run().ranks.size();
  if (rank_count > model.limits.rank_columns) {
    json->Null();
    return;
  }
  json->StartArray();
  size_t next = 0;
  for (size_t rank = 0; rank < rank_count; ++rank) {
    if (next < spread.by_rank.size() && spread.by_rank[next].first == rank) {
      json->Int(spread.by_rank[next++].second);
    } else {
      json->Null();
    }
  }
  json->EndArray();
}

void AddKernel(const PageModel& model, const analysis::KernelTotals& row, JsonRow* json) {
  json->StartObject().Key("name").Text(model.run().names[row.name]);
  json->Key("kind").Text(analysis::KernelKindName(row.kind)).Key("count").Uint(row.count);
  json->Key("total_ns").Int(row.total_ns).Key("cpu_self_ns").Null().Key("cpu_total_ns").Null();
  json->Key("device_total_ns").Null().Key("mean_ns").Double(row.mean_ns()).Key("min_ns").Int(row.min_ns);
  json->Key("max_ns").Int(row.max_ns);
  AddSpread(model, row.spread, json);
  json->EndObject();
}

void AddOperator(const PageModel& model, const analysis::OperatorTotals& row, JsonRow* json) {
  json->StartObject().Key("name").Text(model.run().names[row.name]).Key("kind").Text("operator");
  json->Key("count").Uint(row.count).Key("total_ns").Int(row.device_self_ns).Key("cpu_self_ns").Int(row.cpu_self_ns);
  json->Key("cpu_total_ns").Int(row.cpu_total_ns).Key("device_total_ns").Int(row.device_total_ns);
  json->Key("mean_ns").Null().Key("min_ns").Null().Key("max_ns").Null();
  AddSpread(model, row.spread, json);
  json->EndObject();
}

void NoteCut(const char* what, size_t kept, size_t all, std::vector<Reduction>* reductions) {
  if (kept >= all) return;
  reductions->push_back({what, fmt::format("{}: the {} with the most time of {}; --csv and --json have all", what,
                                           report::FormatCount(kept), report::FormatCount(all))});
}

}  // namespace

void AddNameTables(const PageModel& model, JsonRow* json, std::vector<Reduction>* reductions) {
  const auto kernels = analysis::TotalKernels(model.result().Get<analysis::Kernels>().rows, model.run().names);
  const auto operators = analysis::TotalOperators(model.result().Get<analysis::Operators>().rows, model.run().names);
  json->Key("kernels").StartArray();
  for (size_t i = 0; i < kernels.size() && i < model.limits.name_rows; ++i) AddKernel(model, kernels[i], json);
  json->EndArray().Key("operators").StartArray();
  for (size_t i = 0; i < operators.size() && i < model.limits.name_rows; ++i) AddOperator(model, operators[i], json);
  json->EndArray();
  NoteCut("kernels", model.limits.name_rows, kernels.size(), reductions);
  NoteCut("operators", model.limits.name_rows, operators.size(), reductions);
}

}  // namespace lockstep::page
