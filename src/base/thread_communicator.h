#pragma once

#include <functional>

#include "base/communicator.h"

namespace lockstep {

/// Calls `body` on `process_count` threads of this process, each with a communicator as if it were a process of its
/// own: for tests, and for simulating more processes than a machine has. Returns when all have returned.
void RunOnThreads(size_t process_count, const std::function<void(Communicator&)>& body);

}  // namespace lockstep
