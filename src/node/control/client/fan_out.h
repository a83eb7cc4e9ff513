#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lockstep::control {

constexpr size_t kDefaultParallel = 64;  ///< Nodes that are talked to at a time.

/// Calls `work(index, left_ns)` for every index in [0, count), at most `parallel` at a time, each on a thread of its
/// own while it runs. `left_ns` > 0 is the rest of the common deadline, to be passed to NodeClient: `work` is trusted
/// to return within it. An index that was not started before the deadline gets `late(index)` instead. Returns when all
/// have returned. Calls of one index are complete before the return is seen (no locks needed for what belongs to one
/// index). Where no thread can be had, fewer do the work.
void ForEachNode(size_t count, size_t parallel, int64_t deadline_ns,
                 const std::function<void(size_t index, int64_t left_ns)>& work,
                 const std::function<void(size_t index)>& late);

/// What `work` says of each index, in order; a node that does not answer takes one of the threads until its deadline
/// and nothing from the others. `deadline_ns` is a length from now, for all together. Errors: work's own; kCancelled
/// where its turn did not come in time.
template <typename T>
std::vector<Result<T>> FanOut(size_t count, size_t parallel, int64_t deadline_ns,
                              const std::function<Result<T>(size_t index, int64_t left_ns)>& work) {
  std::vector<Result<T>> results;
  results.reserve(count);
  for (size_t i = 0; i < count; ++i)
    results.emplace_back(Error{ErrorCode::kCancelled, "not asked before the time limit"});
  ForEachNode(
      count, parallel, deadline_ns, [&](size_t i, int64_t left_ns) { results[i] = work(i, left_ns); },
      [&](size_t i) {
        results[i] = Error{ErrorCode::kCancelled,
                           "was not asked: the time limit was reached first; give it more time or more parallelism"};
      });
  return results;
}

}  // namespace lockstep::control
