#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/track_merge.h"

namespace lockstep::analysis {

/// The parts of `list` outside of `cover`; both sorted and disjoint. Visit is called as visit(index into list, part).
template <typename Visit>
void VisitOutside(const std::vector<Interval>& list, const std::vector<Interval>& cover, const Visit& visit) {
  size_t at = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    int64_t from_ns = list[i].start_ns;
    while (at < cover.size() && cover[at].end_ns <= from_ns) ++at;
    for (size_t k = at; k < cover.size() && cover[k].start_ns < list[i].end_ns; ++k) {
      if (cover[k].start_ns > from_ns) visit(i, Interval{from_ns, cover[k].start_ns});
      from_ns = std::max(from_ns, cover[k].end_ns);
    }
    if (from_ns < list[i].end_ns) visit(i, Interval{from_ns, list[i].end_ns});
  }
}

/// Sorts by start what is mostly sorted: ascending runs are merged. Equal starts keep their order. `start_of` maps an
/// item to its start. Cost: O(n log runs).
template <typename Item, typename StartOf>
void SortRuns(std::vector<Item>* list, const StartOf& start_of) {
  const auto less = [&](const Item& a, const Item& b) { return start_of(a) < start_of(b); };
  std::vector<size_t> runs;  // where each begins
  for (size_t i = 0; i < list->size(); ++i) {
    if (i == 0 || less((*list)[i], (*list)[i - 1])) runs.push_back(i);
  }
  const auto at = [&](size_t run) {
    return list->begin() + static_cast<std::ptrdiff_t>(run < runs.size() ? runs[run] : list->size());
  };
  while (runs.size() > 1) {
    for (size_t run = 0; run + 1 < runs.size(); run += 2) std::inplace_merge(at(run), at(run + 1), at(run + 2), less);
    std::vector<size_t> merged;
    for (size_t run = 0; run < runs.size(); run += 2) merged.push_back(runs[run]);
    runs = std::move(merged);
  }
}

/// Sorted, disjoint, touching ones as one.
inline std::vector<Interval> Unite(std::vector<Interval> list) {
  SortRuns(&list, [](const Interval& interval) { return interval.start_ns; });
  size_t kept = 0;
  for (const Interval& interval : list) {
    if (interval.start_ns >= interval.end_ns) continue;
    if (kept > 0 && interval.start_ns <= list[kept - 1].end_ns) {
      list[kept - 1].end_ns = std::max(list[kept - 1].end_ns, interval.end_ns);
    } else {
      list[kept++] = interval;
    }
  }
  list.resize(kept);
  return list;
}

}  // namespace lockstep::analysis
