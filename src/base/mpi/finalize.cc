#include "base/mpi/finalize.h"

#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/pause.h"

namespace lockstep::mpi {
namespace {

constexpr std::chrono::seconds kOthersMayBeLate(2);

void StayHere(int /*signal*/) {
  while (true) ::pause();
}

}  // namespace

void Finalize(int status, std::chrono::seconds patience) {
  std::fflush(nullptr);
  MPI_Barrier(MPI_COMM_WORLD);  // One that still tells its results, to somebody who reads slowly, is waited for.
  const std::jthread watch([=, caller = ::pthread_self()](const std::stop_token& stop) {
    if (!Pause(stop, patience)) return;
    // The end of a process frees the one that waits for it. That one would go on in MPI, and have the launcher write to
    // those that have left: MPICH's fails then. So none goes on any more before the first one leaves.
    std::signal(SIGUSR2, StayHere);
    ::pthread_kill(caller, SIGUSR2);
    std::this_thread::sleep_for(kOthersMayBeLate);
    std::_Exit(status);
  });
  MPI_Finalize();
}

}  // namespace lockstep::mpi
