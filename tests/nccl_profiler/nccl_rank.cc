// One rank of a job that hangs, as its NCCL would drive the profiler plugin: `nccl_rank RANK SIZE DONE OPEN` finishes
// DONE all_reduces, begins OPEN more that never end, and is killed.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "nccl_driver.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int rank = std::atoi(argv[1]);
  const int size = std::atoi(argv[2]);
  const int done = std::atoi(argv[3]);
  const int open = std::atoi(argv[4]);
  ::setenv("RANK", argv[1], 1);
  ::setenv("WORLD_SIZE", argv[2], 1);
  constexpr uint64_t kCommunicator = 0x5EED;
  NcclDriver nccl(LOCKSTEP_NCCL_PROFILER, 6);
  if (!nccl.loaded()) return 3;
  void* const context = nccl.Init(kCommunicator, "default_pg", rank, size);
  uint64_t sequence = 0;
  for (int i = 0; i < done; ++i) nccl.Whole(context, kCommunicator, rank, sequence++, 1 << 20, 2);
  for (int i = 0; i < open; ++i) {
    void* const operation = nccl.AllReduce(context, kCommunicator, rank, sequence++, 1 << 20, 2);
    nccl.Stop(operation);
    nccl.Kernel(context, operation, 0, 1);
  }
  std::raise(SIGKILL);
  return 1;
}
