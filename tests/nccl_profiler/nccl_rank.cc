// One rank of a job that hangs, as its NCCL would drive the profiler plugin: `nccl_rank RANK SIZE DONE OPEN` finishes
// DONE all_reduces, begins OPEN more that never end, and is killed. `nccl_rank RANK SIZE DONE OPEN stay` says "ready"
// and does what lines of its input say instead: "all_reduce N" and "all_gather N" finish N more, any other ends it.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "nccl_driver.h"

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) return 2;
  const int rank = std::atoi(argv[1]);
  const int size = std::atoi(argv[2]);
  const int done = std::atoi(argv[3]);
  const int open = std::atoi(argv[4]);
  ::setenv("RANK", argv[1], 1);
  ::setenv("WORLD_SIZE", argv[2], 1);
  // Of another job there is another one.
  const char* const other = std::getenv("LOCKSTEP_NCCL_TEST_COMMUNICATOR");
  const uint64_t communicator = other == nullptr ? 0x5EED : std::strtoull(other, nullptr, 10);
  NcclDriver nccl(LOCKSTEP_NCCL_PROFILER, 6);
  if (!nccl.loaded()) return 3;
  void* const context = nccl.Init(communicator, "default_pg", rank, size);
  uint64_t sequence = 0;
  for (int i = 0; i < done; ++i) nccl.Whole(context, communicator, rank, sequence++, 1 << 20, 2);
  for (int i = 0; i < open; ++i) {
    void* const operation = nccl.AllReduce(context, communicator, rank, sequence++, 1 << 20, 2);
    nccl.Stop(operation);
    nccl.Kernel(context, operation, 0, 1);
  }
  if (argc == 6) {
    std::printf("ready\n");
    std::fflush(stdout);
    char function[32];
    int count = 0;
    while (std::scanf("%31s %d", function, &count) == 2) {
      const bool gathers = std::strcmp(function, "all_gather") == 0;
      for (int i = 0; i < count; ++i) {
        void* const operation =
            nccl.Collective(context, communicator, rank, sequence++, gathers ? "AllGather" : "AllReduce", 1 << 20, 2);
        nccl.Stop(operation);
        for (uint8_t channel = 0; channel < 2; ++channel) {
          nccl.StopKernel(nccl.Kernel(context, operation, channel, 1'000'000), 1'500'000);
        }
      }
      std::printf("done\n");
      std::fflush(stdout);
    }
    return 0;
  }
  std::raise(SIGKILL);
  return 1;
}
