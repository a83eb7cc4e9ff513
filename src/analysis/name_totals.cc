#include "analysis/name_totals.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/name_rows.h"
#include "analysis/quantiles.h"

namespace lockstep::analysis {
namespace {

/// One value a rank; a rank that has the name twice (it should not) is added up.
void AddTo(RankSpread* spread, size_t rank_index, int64_t value_ns) {
  if (!spread->by_rank.empty() && spread->by_rank.back().first == rank_index) {
    spread->by_rank.back().second = AddSaturating(spread->by_rank.back().second, value_ns);
  } else {
    spread->by_rank.emplace_back(rank_index, value_ns);
  }
}

void Finish(RankSpread* spread) {
  std::sort(spread->by_rank.begin(), spread->by_rank.end());
  std::vector<int64_t> values;
  values.reserve(spread->by_rank.size());
  int64_t least_ns = 0;
  int64_t most_ns = 0;
  for (const auto& [rank_index, value_ns] : spread->by_rank) {
    if (values.empty() || value_ns < least_ns) {
      least_ns = value_ns;
      spread->min_rank_index = rank_index;
    }
    if (values.empty() || value_ns > most_ns) {
      most_ns = value_ns;
      spread->max_rank_index = rank_index;
    }
    values.push_back(value_ns);
  }
  spread->quantiles_ns = FiveNumbers(&values);
}

}  // namespace

std::vector<KernelTotals> TotalKernels(const std::vector<KernelRow>& rows, const model::NameTable& names) {
  std::map<std::pair<uint32_t, KernelKind>, KernelTotals> by_key;
  for (const KernelRow& row : rows) {
    if (row.count == 0) continue;
    KernelTotals& totals = by_key[{row.name.value, row.kind}];
    const bool first = totals.count == 0;
    totals.name = row.name;
    totals.kind = row.kind;
    totals.count += row.count;
    totals.total_ns = AddSaturating(totals.total_ns, row.total_ns);
    totals.min_ns = first ? row.min_ns : std::min(totals.min_ns, row.min_ns);
    totals.max_ns = first ? row.max_ns : std::max(totals.max_ns, row.max_ns);
    AddTo(&totals.spread, row.rank_index, row.total_ns);
  }
  std::vector<KernelTotals> result;
  result.reserve(by_key.size());
  for (auto& entry : by_key) {
    Finish(&entry.second.spread);
    result.push_back(std::move(entry.second));
  }
  std::sort(result.begin(), result.end(), [&names](const KernelTotals& a, const KernelTotals& b) {
    if (a.total_ns != b.total_ns) return a.total_ns > b.total_ns;
    if (a.name != b.name) return names[a.name] < names[b.name];
    return a.kind < b.kind;
  });
  return result;
}

std::vector<OperatorTotals> TotalOperators(const std::vector<OperatorRow>& rows, const model::NameTable& names) {
  std::map<uint32_t, OperatorTotals> by_name;
  for (const OperatorRow& row : rows) {
    OperatorTotals& totals = by_name[row.name.value];
    totals.name = row.name;
    totals.count += row.count;
    totals.cpu_self_ns = AddSaturating(totals.cpu_self_ns, row.cpu_self_ns);
    totals.cpu_total_ns = AddSaturating(totals.cpu_total_ns, row.cpu_total_ns);
    totals.device_self_ns = AddSaturating(totals.device_self_ns, row.device_self_ns);
    totals.device_total_ns = AddSaturating(totals.device_total_ns, row.device_total_ns);
  }
  for (const OperatorRow& row : rows) {
    OperatorTotals& totals = by_name[row.name.value];
    AddTo(&totals.spread, row.rank_index, totals.device_self_ns > 0 ? row.device_self_ns : row.cpu_self_ns);
  }
  std::vector<OperatorTotals> result;
  result.reserve(by_name.size());
  for (auto& entry : by_name) {
    Finish(&entry.second.spread);
    result.push_back(std::move(entry.second));
  }
  std::sort(result.begin(), result.end(), [&names](const OperatorTotals& a, const OperatorTotals& b) {
    return std::tuple(b.device_self_ns, b.cpu_self_ns, names[a.name]) <
           std::tuple(a.device_self_ns, a.cpu_self_ns, names[b.name]);
  });
  return result;
}

}  // namespace lockstep::analysis
