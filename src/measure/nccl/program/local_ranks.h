#pragma once

#include <functional>

namespace lockstep::nccl_bench {

/// Starts `count` processes that call `work` as ranks of one job on this host (RANK, WORLD_SIZE, LOCAL_RANK,
/// LOCAL_WORLD_SIZE, MASTER_ADDR=127.0.0.1 and a free MASTER_PORT) and waits for them. When one fails the others get a
/// moment to say what they saw of it, and are killed; they do not outlive this process. Returns the first status that
/// is not 0. Call it before there are threads.
int StartLocalRanks(int count, const std::function<int()>& work);

}  // namespace lockstep::nccl_bench
