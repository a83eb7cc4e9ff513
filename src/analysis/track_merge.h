#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace lockstep::analysis {

/// A half-open interval of time, [start, end).
struct Interval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

/// Visits the items of several cursors, each sorted by start, as one sequence sorted by (start, cursor order).
/// A Cursor has `bool done() const`, `int64_t start() const` and `void Next()`. Visit is called as visit(cursor).
/// As long as one cursor stays ahead of all others it is walked without touching the heap, which is the common case
/// (one busy stream or thread). Cost: O(n + switches x log k) for n items of k cursors.
template <typename Cursor, typename Visit>
void MergeByStart(std::vector<Cursor>& cursors, Visit visit) {
  using Entry = std::pair<int64_t, size_t>;  // (start, cursor index)
  std::vector<Entry> heap;
  for (size_t i = 0; i < cursors.size(); ++i) {
    if (!cursors[i].done()) heap.emplace_back(cursors[i].start(), i);
  }
  const auto sift_down = [&heap](size_t at) {
    for (;;) {
      size_t least = at;
      for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap.size(); ++child) {
        if (heap[child] < heap[least]) least = child;
      }
      if (least == at) return;
      std::swap(heap[at], heap[least]);
      at = least;
    }
  };
  for (size_t i = heap.size(); i-- > 0;) sift_down(i);

  while (!heap.empty()) {
    const size_t index = heap[0].second;
    Cursor& cursor = cursors[index];
    Entry limit{std::numeric_limits<int64_t>::max(), std::numeric_limits<size_t>::max()};
    for (size_t child = 1; child <= 2 && child < heap.size(); ++child) limit = std::min(limit, heap[child]);
    do {
      visit(cursor);
      cursor.Next();
    } while (!cursor.done() && Entry{cursor.start(), index} < limit);
    if (cursor.done()) {
      heap[0] = heap.back();
      heap.pop_back();
    } else {
      heap[0].first = cursor.start();
    }
    sift_down(0);
  }
}

}  // namespace lockstep::analysis
