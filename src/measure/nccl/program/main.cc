// lockstep-nccl-bench: what `lockstep bench collectives --backend nccl` becomes where no MPI brings ranks together: one
// rank of a job whose launcher set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or, with --start N, the parent of N
// ranks on this host. Its arguments are those of bench_program; rank 0 prints. Exit status 0 done, 1 failed or wrong
// results, 2 misused.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "measure/nccl/nccl_backend.h"
#include "measure/nccl/program/local_ranks.h"
#include "measure/rendezvous/job_place.h"
#include "measure/rendezvous/tcp_communicator.h"
#include "measure/runner/bench_program.h"

namespace {

using namespace lockstep;

constexpr const char* kProgram = "lockstep-nccl-bench";

/// Ends the process where it stands: what it holds of NCCL's may never come to rest.
[[noreturn]] void EndHere(int status) {
  std::fflush(nullptr);
  std::_Exit(status);
}

int RankWork(const bench_program::Words& words) {
  const auto environment = launch::Environment::Own();
  const auto place = rendezvous::PlaceFromEnvironment(environment);
  if (!place) {
    bench_program::Complain(kProgram, true, place.error());
    return bench_program::kMisused;
  }
  rendezvous::TcpCommunicator::Limits limits;
  limits.meeting = words.timeout;
  // A rank that is stuck in a call finds that out itself, and says more.
  limits.message = words.timeout + words.timeout / 10 + std::chrono::seconds(2);
  const auto communicator = rendezvous::TcpCommunicator::Meet(*place, limits, [](const Error& error) {
    bench_program::Complain(kProgram, true, error);
    EndHere(bench_program::kFailed);
  });
  if (!communicator) {
    bench_program::Complain(kProgram, true, communicator.error());
    return bench_program::kFailed;
  }
  const bool is_root = (*communicator)->is_root();
  const auto failed = [&](const Error& error) {
    bench_program::Complain(kProgram, is_root, error);
    EndHere(bench_program::kFailed);
  };
  const auto backend = nccl_bench::NcclBackend::Create(communicator->get(), environment,
                                                       {.library_path = words.nccl_library, .timeout = words.timeout});
  if (!backend) failed(backend.error());
  const auto status = bench_program::MeasureAndTell(backend->get(), words);
  if (!status) failed(status.error());
  return *status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto words = bench_program::FromArguments({argv + 1, argv + argc});
    if (!words) {
      Error error = words.error();
      error.message += "; start it by lockstep bench collectives --backend nccl";
      bench_program::Complain(kProgram, true, error);
      return bench_program::kMisused;
    }
    if (words->start_count == 0) return RankWork(*words);
    return nccl_bench::StartLocalRanks(words->start_count, [&] { return RankWork(*words); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", kProgram, error.what());
    EndHere(bench_program::kFailed);
  }
}
