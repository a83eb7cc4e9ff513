#include "mpi/finalize.h"

#include <mpi.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace lockstep::mpi {

void Finalize(int status, std::chrono::seconds patience) {
  std::fflush(nullptr);
  MPI_Barrier(MPI_COMM_WORLD);  // One that still tells its results, to somebody who reads slowly, is waited for.
  const std::jthread watch([=](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    ended.wait_for(lock, stop, patience, [] { return false; });
    if (!stop.stop_requested()) std::_Exit(status);
  });
  MPI_Finalize();
}

}  // namespace lockstep::mpi
