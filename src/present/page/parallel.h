#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace lockstep::page {

/// Calls body(i) for every i below `count`, on up to `thread_count` threads (0 = one per processor), the caller's
/// included. Bodies must not throw and must not touch what others touch.
template <typename Body>
void ForEachIndex(size_t count, uint32_t thread_count, const Body& body) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) body(i);
  };
  const size_t wanted = thread_count > 0 ? thread_count : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < std::min(wanted, count); ++i) threads.emplace_back(work);
  work();
}

}  // namespace lockstep::page
