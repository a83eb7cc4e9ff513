// lockstep-mpi-bench: what `lockstep bench collectives` starts, once per rank, where MPI starts ranks or brings them
// together. Its arguments are those of bench_program; rank 0 prints. Exit status 0 done, 1 failed or wrong results,
// 2 misused.

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "base/mpi/finalize.h"
#include "base/mpi/launch.h"
#include "measure/mpi/mpi_backend.h"
#include "measure/nccl/nccl_backend.h"
#include "measure/runner/bench_program.h"

namespace {

using namespace lockstep;

constexpr const char* kProgram = "lockstep-mpi-bench";

Result<std::unique_ptr<collective_bench::Backend>> MakeBackend(Communicator* communicator,
                                                               const bench_program::Words& words) {
  if (words.backend == bench_program::BackendKind::kMpi) return std::make_unique<mpi_bench::MpiBackend>();
  return nccl_bench::NcclBackend::Create(communicator, launch::Environment::Own(),
                                         {.library_path = words.nccl_library, .timeout = words.timeout});
}

int Work(const std::vector<std::string>& arguments) {
  mpi::MpiCommunicator communicator;
  const auto word = mpi::AskLauncher([](const char* name) { return std::getenv(name); });
  const std::string lonely = mpi::ExplainLonelyProcesses(word, communicator.process_count());
  if (!lonely.empty()) {
    if (word->process == 0) std::fprintf(stderr, "%s: %s\n", kProgram, lonely.c_str());
    return bench_program::kMisused;
  }
  const bool is_root = communicator.is_root();
  const auto words = bench_program::FromArguments(arguments);
  if (!words) {
    Error error = words.error();
    error.message += "; start it by lockstep bench collectives";
    bench_program::Complain(kProgram, is_root, error);
    return bench_program::kMisused;
  }
  const auto failed = [&](const Error& error) {
    bench_program::Complain(kProgram, is_root, error);
    // The others wait for this one.
    if (error.rank) mpi::AbortJob(bench_program::kFailed);
    return bench_program::kFailed;
  };
  const auto backend = MakeBackend(&communicator, *words);
  if (!backend) return failed(backend.error());
  const auto status = bench_program::MeasureAndTell(backend->get(), *words);
  return status ? *status : failed(status.error());
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    const int status = Work({argv + 1, argv + argc});
    mpi::Finalize(status);
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", kProgram, error.what());
    mpi::AbortJob(bench_program::kFailed);
  }
  return bench_program::kFailed;
}
