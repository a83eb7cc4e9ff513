#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analysis/comparison/compare.h"
#include "analysis/finding.h"

namespace lockstep::comparison {
namespace {

/// Time per rank and step.
Series PerRank(const NameProfile& name, size_t rank_count) {
  Series series;
  for (const int64_t ns : name.step_ns) series.push_back(static_cast<double>(ns) / static_cast<double>(rank_count));
  return series;
}

/// Time per call, of the steps that have one.
Series PerCall(const NameProfile& name) {
  Series series;
  for (size_t i = 0; i < name.step_ns.size(); ++i) {
    if (name.step_count[i] == 0) continue;
    series.push_back(static_cast<double>(name.step_ns[i]) / static_cast<double>(name.step_count[i]));
  }
  return series;
}

double CallsOf(const NameProfile& name, const RunProfile& run) {
  return static_cast<double>(name.count) / static_cast<double>(run.rank_count * run.steps.size());
}

void FindWorstRank(const NameProfile& a, const NameProfile& b, const Comparison& comparison, NameDelta* row) {
  std::map<int32_t, double> of_rank;
  for (const auto& [rank, ns] : a.rank_ns)
    of_rank[rank] = static_cast<double>(ns) / static_cast<double>(comparison.a.steps.size());
  for (const auto& [rank, ns] : b.rank_ns) {
    const auto found = of_rank.find(rank);
    if (found == of_rank.end()) continue;
    const double delta = static_cast<double>(ns) / static_cast<double>(comparison.b.steps.size()) - found->second;
    if (!row->worst_rank || std::abs(delta) > std::abs(row->worst_rank_delta_ns)) {
      row->worst_rank = rank;
      row->worst_rank_delta_ns = delta;
    }
  }
}

NameDelta DeltaOf(const NamePair& pair, const Comparison& comparison) {
  const RunProfile& run_a = comparison.a;
  const RunProfile& run_b = comparison.b;
  const CompareOptions& options = comparison.options;
  const NameProfile* a = pair.a ? &run_a.names[*pair.a] : nullptr;
  const NameProfile* b = pair.b ? &run_b.names[*pair.b] : nullptr;
  NameDelta row;
  row.pair = pair;
  row.kind = (a != nullptr ? a : b)->kind;
  const Series per_rank_a = a != nullptr ? PerRank(*a, run_a.rank_count) : Series();
  const Series per_rank_b = b != nullptr ? PerRank(*b, run_b.rank_count) : Series();
  row.step = CompareSeries(per_rank_a, per_rank_b, 0, options.minimum_name_effect, options.confidence);
  if (a != nullptr) {
    row.name_a = a->name;
    row.count_a = a->count;
    row.calls_a = CallsOf(*a, run_a);
  }
  if (b != nullptr) {
    row.name_b = b->name;
    row.count_b = b->count;
    row.calls_b = CallsOf(*b, run_b);
  }
  const Series per_call_a = a != nullptr ? PerCall(*a) : Series();
  const Series per_call_b = b != nullptr ? PerCall(*b) : Series();
  row.call = CompareSeries(per_call_a, per_call_b, 0, options.minimum_name_effect, options.confidence);
  // Medians hide calls that only some steps have; the mean is what the time per step is made of.
  row.step.a = Mean(per_rank_a);
  row.step.b = Mean(per_rank_b);
  if (a == nullptr || b == nullptr) {
    row.change = a == nullptr ? Change::kAdded : Change::kRemoved;
    return row;
  }
  row.p_adjusted = WelchP(per_call_a, per_call_b);
  FindWorstRank(*a, *b, comparison, &row);
  return row;
}

CollectiveDelta DeltaOf(const CollectiveProfile* a, const CollectiveProfile* b, const Comparison& comparison) {
  static const CollectiveProfile kNothing;
  const CollectiveProfile& from = a != nullptr ? *a : kNothing;
  const CollectiveProfile& to = b != nullptr ? *b : kNothing;
  const CompareOptions& options = comparison.options;
  CollectiveDelta row;
  row.name = (a != nullptr ? from : to).name;
  row.bytes = (a != nullptr ? from : to).bytes;
  row.calls_a = static_cast<double>(from.count) / static_cast<double>(std::max<size_t>(comparison.a.steps.size(), 1));
  row.calls_b = static_cast<double>(to.count) / static_cast<double>(std::max<size_t>(comparison.b.steps.size(), 1));
  row.timed_a = from.timed_count > 0;
  row.timed_b = to.timed_count > 0;
  row.transfer =
      CompareSeries(from.step_transfer_ns, to.step_transfer_ns, 0, options.minimum_name_effect, options.confidence);
  row.wait = CompareSeries(from.step_wait_ns, to.step_wait_ns, 0, options.minimum_name_effect, options.confidence);
  if (!from.busbw_bytes_per_s.empty()) row.busbw_a = Median(from.busbw_bytes_per_s);
  if (!to.busbw_bytes_per_s.empty()) row.busbw_b = Median(to.busbw_bytes_per_s);
  row.change = a == nullptr ? Change::kAdded : b == nullptr ? Change::kRemoved : row.transfer.change;
  if (row.timed_a && row.timed_b) return row;
  // One side was not measured: nothing can be said of a difference.
  row.transfer.shift.reset();
  row.wait.shift.reset();
  row.transfer.change = row.wait.change = Change::kUnknown;
  if (a != nullptr && b != nullptr) row.change = Change::kUnknown;
  return row;
}

}  // namespace

void CompareNames(Comparison* comparison) {
  std::vector<NameDelta>& rows = comparison->names;
  for (const NamePair& pair : MatchNames(comparison->a.names, comparison->b.names))
    rows.push_back(DeltaOf(pair, *comparison));
  std::vector<double> p;
  std::vector<size_t> tested;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].change != Change::kUnknown || !rows[i].call.shift || !rows[i].call.shift->low) continue;
    tested.push_back(i);
    p.push_back(rows[i].p_adjusted);
  }
  const std::vector<double> adjusted = HolmAdjust(p);
  const double limit = 1 - comparison->options.confidence;
  for (size_t i = 0; i < tested.size(); ++i) {
    NameDelta& row = rows[tested[i]];
    row.p_adjusted = adjusted[i];
    row.change = adjusted[i] <= limit ? row.call.change : Change::kNone;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const NameDelta& x, const NameDelta& y) {
    const double of_x = std::abs(x.delta_ns());
    const double of_y = std::abs(y.delta_ns());
    if (of_x != of_y) return of_x > of_y;
    return std::tie(x.kind, x.name_a, x.name_b) < std::tie(y.kind, y.name_a, y.name_b);
  });
}

void CompareCollectives(Comparison* comparison) {
  using Key = std::pair<std::string, std::optional<int64_t>>;
  std::map<Key, std::pair<const CollectiveProfile*, const CollectiveProfile*>> rows;
  for (const CollectiveProfile& row : comparison->a.collectives) rows[{row.name, row.bytes}].first = &row;
  for (const CollectiveProfile& row : comparison->b.collectives) rows[{row.name, row.bytes}].second = &row;
  std::vector<double> p;
  for (const auto& entry : rows) {
    comparison->collectives.push_back(DeltaOf(entry.second.first, entry.second.second, *comparison));
    const auto [a, b] = entry.second;
    p.push_back(a != nullptr && b != nullptr ? WelchP(a->step_transfer_ns, b->step_transfer_ns) : 1);
  }
  const std::vector<double> adjusted = HolmAdjust(p);
  for (size_t i = 0; i < adjusted.size(); ++i) {
    Change& change = comparison->collectives[i].change;
    const bool tested = change == Change::kFaster || change == Change::kSlower;
    if (tested && adjusted[i] > 1 - comparison->options.confidence) change = Change::kNone;
  }
  const auto size = [](const CollectiveDelta& row) {
    return std::max(std::abs(row.transfer.b - row.transfer.a), std::abs(row.wait.b - row.wait.a));
  };
  std::stable_sort(comparison->collectives.begin(), comparison->collectives.end(),
                   [&](const CollectiveDelta& x, const CollectiveDelta& y) { return size(x) > size(y); });
}

void CompareMemory(Comparison* comparison) {
  std::map<std::pair<int32_t, int32_t>, MemoryDelta> rows;
  for (const MemoryProfile& row : comparison->a.memory) {
    MemoryDelta& delta = rows[{row.rank, row.device}];
    delta.allocated_a = row.peak_allocated_bytes;
    delta.reserved_a = row.peak_reserved_bytes;
  }
  for (const MemoryProfile& row : comparison->b.memory) {
    MemoryDelta& delta = rows[{row.rank, row.device}];
    delta.allocated_b = row.peak_allocated_bytes;
    delta.reserved_b = row.peak_reserved_bytes;
  }
  for (auto& [key, row] : rows) {
    std::tie(row.rank, row.device) = key;
    comparison->memory.push_back(row);
  }
  const auto growth = [](const MemoryDelta& row) {
    return std::abs(static_cast<double>(row.allocated_b.value_or(0)) -
                    static_cast<double>(row.allocated_a.value_or(0)));
  };
  std::stable_sort(comparison->memory.begin(), comparison->memory.end(),
                   [&](const MemoryDelta& x, const MemoryDelta& y) { return growth(x) > growth(y); });
}

void CompareFindings(Comparison* comparison) {
  using Key = std::pair<std::string, std::vector<int32_t>>;
  const auto key_of = [](const analysis::Finding& finding) {
    std::vector<int32_t> ranks = finding.ranks;
    std::sort(ranks.begin(), ranks.end());
    return Key(finding.id, std::move(ranks));
  };
  std::map<Key, const analysis::Finding*> in_a;
  for (const analysis::Finding& finding : comparison->a.findings) in_a.emplace(key_of(finding), &finding);
  for (const analysis::Finding& finding : comparison->b.findings) {
    FindingDelta row;
    row.id = finding.id;
    row.ranks = finding.ranks;
    row.title = finding.title;
    row.gain_b_ns = finding.gain_ns_per_step;
    const auto found = in_a.find(key_of(finding));
    row.state = found == in_a.end() ? FindingDelta::State::kAppeared : FindingDelta::State::kStayed;
    if (found != in_a.end()) {
      row.gain_a_ns = found->second->gain_ns_per_step;
      in_a.erase(found);
    }
    comparison->findings.push_back(std::move(row));
  }
  for (const analysis::Finding& finding : comparison->a.findings) {
    const auto found = in_a.find(key_of(finding));
    if (found == in_a.end() || found->second != &finding) continue;
    comparison->findings.push_back({FindingDelta::State::kDisappeared, finding.id, finding.ranks, finding.title,
                                    finding.gain_ns_per_step, std::nullopt});
  }
  std::stable_sort(comparison->findings.begin(), comparison->findings.end(),
                   [](const FindingDelta& x, const FindingDelta& y) { return x.state < y.state; });
}

}  // namespace lockstep::comparison
