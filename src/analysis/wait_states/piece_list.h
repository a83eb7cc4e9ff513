#pragma once

#include <algorithm>
#include <cstdint>
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

/// Sorted, disjoint, touching ones as one.
inline std::vector<Interval> Unite(std::vector<Interval> list) {
  std::sort(list.begin(), list.end(), [](const Interval& a, const Interval& b) { return a.start_ns < b.start_ns; });
  std::vector<Interval> united;
  for (const Interval& interval : list) {
    if (interval.start_ns >= interval.end_ns) continue;
    if (!united.empty() && interval.start_ns <= united.back().end_ns) {
      united.back().end_ns = std::max(united.back().end_ns, interval.end_ns);
    } else {
      united.push_back(interval);
    }
  }
  return united;
}

}  // namespace lockstep::analysis
