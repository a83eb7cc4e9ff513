#include "base/mpi/finalize.h"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/pause.h"

namespace lockstep::mpi {

void Finalize(int status, std::chrono::seconds patience) {
  std::fflush(nullptr);
  MPI_Barrier(MPI_COMM_WORLD);  // One that still tells its results, to somebody who reads slowly, is waited for.
  const std::jthread watch([=](const std::stop_token& stop) {
    if (Pause(stop, patience)) std::_Exit(status);
  });
  MPI_Finalize();
}

}  // namespace lockstep::mpi
