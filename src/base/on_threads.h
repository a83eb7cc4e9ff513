#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace lockstep {

/// Calls `body` with 0 .. count - 1 on up to `thread_count` threads (0: one per processor). What it throws is thrown
/// here, that of the lowest number, when all are done.
void OnThreads(size_t count, uint32_t thread_count, const std::function<void(size_t)>& body);

}  // namespace lockstep
