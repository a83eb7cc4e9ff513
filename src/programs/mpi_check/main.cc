// lockstep-mpi-check: whether MPI's collectives work between these nodes and agree, in a few seconds. Started by mpirun
// or srun, on its own or by `lockstep doctor --mpi`. Rank 0 prints one JSON object, "lockstep.mpi-check/1". Exit status
// 0 all agreed, 1 some rank had a wrong result.

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/mpi/finalize.h"

namespace {

constexpr int kRepeats = 5;

struct Operation {
  const char* name;
  /// Runs it once over `count` numbers of each rank; true where this rank's result is right.
  bool (*run)(int rank, int size, int count);
};

/// What rank `rank` puts at `index`: small whole numbers, so that every order of adding gives the same.
double ValueOf(int rank, int index) { return static_cast<double>((rank + 1) * (index % 7 + 1)); }

std::vector<double> ValuesOf(int rank, int count) {
  std::vector<double> values(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<size_t>(i)] = ValueOf(rank, i);
  return values;
}

bool AllReduce(int rank, int size, int count) {
  const std::vector<double> in = ValuesOf(rank, count);
  std::vector<double> out(in.size());
  MPI_Allreduce(in.data(), out.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double ranks = size * (size + 1) / 2.0;
  for (int i = 0; i < count; ++i) {
    if (out[static_cast<size_t>(i)] != ranks * (i % 7 + 1)) return false;
  }
  return true;
}

bool AllGather(int rank, int size, int count) {
  const std::vector<double> in = ValuesOf(rank, count);
  std::vector<double> out(in.size() * static_cast<size_t>(size));
  MPI_Allgather(in.data(), count, MPI_DOUBLE, out.data(), count, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int other = 0; other < size; ++other) {
    const std::vector<double> expected = ValuesOf(other, count);
    if (!std::equal(expected.begin(), expected.end(), out.begin() + static_cast<int64_t>(other) * count)) return false;
  }
  return true;
}

bool Broadcast(int rank, int size, int count) {
  const int root = size - 1;
  std::vector<double> values = rank == root ? ValuesOf(root, count) : std::vector<double>(static_cast<size_t>(count));
  MPI_Bcast(values.data(), count, MPI_DOUBLE, root, MPI_COMM_WORLD);
  return values == ValuesOf(root, count);
}

/// A host name as JSON can hold it.
std::string Plain(std::string name) {
  std::erase_if(name, [](char c) { return c < ' ' || c > '~' || c == '"' || c == '\\'; });
  return name;
}

std::vector<std::string> HostsOf(int size) {
  std::array<char, MPI_MAX_PROCESSOR_NAME> name = {};
  int length = 0;
  MPI_Get_processor_name(name.data(), &length);
  std::vector<char> all(name.size() * static_cast<size_t>(size));
  MPI_Allgather(name.data(), static_cast<int>(name.size()), MPI_CHAR, all.data(), static_cast<int>(name.size()),
                MPI_CHAR, MPI_COMM_WORLD);
  std::vector<std::string> hosts;
  for (size_t at = 0; at < all.size(); at += name.size()) hosts.push_back(Plain(std::string(&all[at])));
  return hosts;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto operations =
      std::to_array<Operation>({{"all_reduce", AllReduce}, {"all_gather", AllGather}, {"broadcast", Broadcast}});
  const std::vector<std::string> hosts = HostsOf(size);
  std::string text = "{\"schema\":\"lockstep.mpi-check/1\",\"hosts\":[";
  for (const std::string& host : hosts) text += (&host == &hosts.front() ? "\"" : ",\"") + host + "\"";
  text += "],\"operations\":[";
  bool is_right = true;
  bool is_first = true;
  for (const Operation& operation : operations) {
    for (const int count : {1, 512, 32'768, 262'144}) {
      std::vector<double> seconds;
      int right = 1;
      for (int i = 0; i < kRepeats; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        right = operation.run(rank, size, count) && right != 0 ? 1 : 0;
        double longest = 0;
        const double own = MPI_Wtime() - start;
        MPI_Allreduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        seconds.push_back(longest);
      }
      std::vector<int> all_right(static_cast<size_t>(size));
      MPI_Gather(&right, 1, MPI_INT, all_right.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
      if (rank != 0) continue;
      std::sort(seconds.begin(), seconds.end());
      text += is_first ? "{" : ",{";
      is_first = false;
      text += "\"operation\":\"" + std::string(operation.name) + "\",\"bytes\":" + std::to_string(count * 8LL) +
              ",\"time_ns\":" + std::to_string(static_cast<int64_t>(seconds[kRepeats / 2] * 1e9)) +
              ",\"wrong_ranks\":[";
      bool is_first_wrong = true;
      for (int other = 0; other < size; ++other) {
        if (all_right[static_cast<size_t>(other)] != 0) continue;
        text += (is_first_wrong ? "" : ",") + std::to_string(other);
        is_first_wrong = is_right = false;
      }
      text += "]}";
    }
  }
  if (rank == 0) std::printf("%s]}\n", text.c_str());
  const int status = is_right ? EXIT_SUCCESS : EXIT_FAILURE;
  lockstep::mpi::Finalize(status);
  return status;
}
