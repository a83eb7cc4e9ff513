#pragma once

#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "model/clock.h"
#include "present/query/table.h"

namespace lockstep::query {

/// What constraints on a column of aligned instants leave of time: both ends count.
class TimeRange {
 public:
  /// Takes a constraint on that column.
  void Narrow(const BoundConstraint& bound) {
    const unsigned char op = bound.constraint.op;
    const bool equal = op == SQLITE_INDEX_CONSTRAINT_EQ;
    const bool lower = equal || op == SQLITE_INDEX_CONSTRAINT_GT || op == SQLITE_INDEX_CONSTRAINT_GE;
    const bool upper = equal || op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE;
    if (lower && bound.floor()) low_ns_ = std::max(low_ns_, *bound.floor());
    if (upper && bound.ceil()) high_ns_ = std::min(high_ns_, *bound.ceil());
  }

  /// [first, end) of sorted times of a rank's own clock. Cost: O(log n).
  template <typename Times>
  std::pair<size_t, size_t> RowsOf(const Times& time_ns, const model::ClockMap& clock) const {
    const int64_t* times = time_ns.data();
    const auto* all_end = times + time_ns.size();
    const auto* first = std::partition_point(times, all_end, [&](int64_t ns) { return clock.ToRun(ns) < low_ns_; });
    const auto* end = std::partition_point(first, all_end, [&](int64_t ns) { return clock.ToRun(ns) <= high_ns_; });
    return {static_cast<size_t>(first - times), static_cast<size_t>(end - times)};
  }

 private:
  int64_t low_ns_ = std::numeric_limits<int64_t>::min();
  int64_t high_ns_ = std::numeric_limits<int64_t>::max();
};

}  // namespace lockstep::query
