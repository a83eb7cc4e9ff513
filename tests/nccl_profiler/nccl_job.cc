// A job of several processes whose NCCL drives the profiler plugin: `nccl_job RANKS ROUNDS LATE_RANK LATE_MS VERSION
// OPEN`. A round is an all_reduce, an all_gather and a reduce_scatter of all ranks, each of which begins on the device
// when its rank comes to it, works once all have come, and ends on all; and a send from rank 0 to rank 1, over a
// communicator that counts the ranks backwards. LATE_RANK comes to every all_reduce LATE_MS later. OPEN=1: at the end
// all but rank 1 begin another all_reduce that never ends, and all are killed. Prints what was when as JSON, by the
// wall clock.
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "nccl_driver.h"

namespace {

constexpr int kMostRanks = 16;
constexpr int kMostOperations = 4096;
constexpr uint8_t kChannels = 2;
constexpr uint64_t kWorld = 0x5EED;
constexpr uint64_t kBackwards = 0xBACC;
constexpr size_t kElements = 1 << 20;

/// A callback comes between two looks at the clock: a busy machine may hold a process up between any two lines.
struct Instant {
  int64_t start_ns;       ///< Before the first kernel's begin was told.
  int64_t started_by_ns;  ///< After it.
  int64_t end_ns;
  int64_t device_ns;  ///< First begin to last end, by the device's timer.
};

/// What the processes share.
struct Board {
  std::atomic<int> arrived[kMostOperations];
  std::atomic<int> in_round[kMostOperations];
  Instant instants[kMostRanks][kMostOperations];
};

int64_t ClockNs(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

struct Job {
  int ranks, rounds, late_rank, late_ms, version, open;
};

class Rank {
 public:
  Rank(const Job& job, int rank, Board* board)
      : job_(job), rank_(rank), board_(*board), nccl_(LOCKSTEP_NCCL_PROFILER, job.version) {
    if (!nccl_.loaded()) ::_exit(3);
  }

  void Run() {
    void* const world = nccl_.Init(kWorld, "default_pg", rank_, job_.ranks);
    void* const backwards = nccl_.Init(kBackwards, "pipeline", Backwards(rank_), job_.ranks);
    for (int round = 0; round < job_.rounds; ++round) {
      // Who sends and receives is not late for that.
      ++board_.in_round[round];
      while (board_.in_round[round] < job_.ranks) ::usleep(20);
      ::usleep(1000);
      if (rank_ == job_.late_rank) ::usleep(static_cast<useconds_t>(job_.late_ms) * 1000);
      const auto sequence = static_cast<uint64_t>(round);
      All(world, "AllReduce", sequence, kElements);
      All(world, "AllGather", sequence, kElements / static_cast<size_t>(job_.ranks));
      All(world, "ReduceScatter", sequence, kElements / static_cast<size_t>(job_.ranks));
      if (rank_ < 2) {
        const char* const function = rank_ == 0 ? "Send" : "Recv";
        InOperation(backwards,
                    nccl_.PointToPoint(backwards, kBackwards, Backwards(rank_), function, Backwards(1 - rank_), 4096),
                    1, 2);
      }
      ++next_;  // Those who are not in it count it, too.
    }
    if (job_.open != 0) {
      if (rank_ != 1) {
        void* const operation =
            nccl_.AllReduce(world, kWorld, rank_, static_cast<uint64_t>(job_.rounds), kElements, kChannels);
        nccl_.Stop(operation);
        nccl_.Kernel(world, operation, 0, DeviceNs());
      }
      ::raise(SIGKILL);
    }
    ::_exit(0);
  }

 private:
  int Backwards(int rank) const { return job_.ranks - 1 - rank; }
  /// A device's timer is a clock of its own.
  uint64_t DeviceNs() const { return static_cast<uint64_t>(ClockNs(CLOCK_MONOTONIC) + 7'000'000'000LL * (rank_ + 1)); }

  void All(void* context, const char* function, uint64_t sequence, size_t count) {
    InOperation(context, nccl_.Collective(context, kWorld, rank_, sequence, function, count, kChannels), kChannels,
                job_.ranks);
    ++next_;
  }

  void InOperation(void* context, void* operation, uint8_t channels, int members) {
    nccl_.Stop(operation);
    Instant& instant = board_.instants[rank_][next_];
    instant.start_ns = ClockNs(CLOCK_REALTIME);
    std::vector<void*> kernels;
    const uint64_t first_device_ns = DeviceNs();
    for (uint8_t channel = 0; channel < channels; ++channel) {
      kernels.push_back(nccl_.Kernel(context, operation, channel, channel == 0 ? first_device_ns : DeviceNs()));
      if (channel == 0) instant.started_by_ns = ClockNs(CLOCK_REALTIME);
    }
    ++board_.arrived[next_];
    while (board_.arrived[next_] < members) ::usleep(20);
    ::usleep(2000);
    instant.end_ns = ClockNs(CLOCK_REALTIME);
    for (void* const kernel : kernels) {
      const uint64_t device_ns = DeviceNs();
      instant.device_ns = static_cast<int64_t>(device_ns - first_device_ns);
      nccl_.StopKernel(kernel, device_ns);
    }
    if (job_.version < 3) nccl_.Stop(nccl_.Proxy(context, operation, (rank_ + 1) % job_.ranks, true));
  }

  const Job& job_;
  const int rank_;
  Board& board_;
  NcclDriver nccl_;
  int next_ = 0;
};

void Print(const Job& job, const Board& board) {
  std::printf("{\"elements\": %zu, \"ranks\": [", kElements);
  for (int rank = 0; rank < job.ranks; ++rank) {
    std::printf("%s[", rank == 0 ? "" : ", ");
    for (int i = 0; i < 4 * job.rounds; ++i) {
      const Instant& instant = board.instants[rank][i];
      std::printf("%s{\"start\": %lld, \"started_by\": %lld, \"end\": %lld, \"device\": %lld}", i == 0 ? "" : ", ",
                  static_cast<long long>(instant.start_ns), static_cast<long long>(instant.started_by_ns),
                  static_cast<long long>(instant.end_ns), static_cast<long long>(instant.device_ns));
    }
    std::printf("]");
  }
  std::printf("]}\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const Job job = {std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]),
                   std::atoi(argv[4]), std::atoi(argv[5]), std::atoi(argv[6])};
  if (job.ranks < 2 || job.ranks > kMostRanks || job.rounds < 1 || 4 * job.rounds > kMostOperations) return 2;
  void* const memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 3;
  auto* const board = static_cast<Board*>(memory);
  std::vector<pid_t> children;
  for (int rank = 0; rank < job.ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("RANK", std::to_string(rank).c_str(), 1);
      ::setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
      ::setenv("WORLD_SIZE", std::to_string(job.ranks).c_str(), 1);
      Rank(job, rank, board).Run();
    }
    children.push_back(child);
  }
  bool all_well = true;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    all_well = all_well && (job.open != 0 ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  Print(job, *board);
  return all_well ? 0 : 1;
}
