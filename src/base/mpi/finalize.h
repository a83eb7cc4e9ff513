#pragma once

#include <chrono>

namespace lockstep::mpi {

/// MPI_Finalize at the end of a program that has told its results. MPICH over UCX's TCP does not come back from it in
/// one job of sixty on a busy machine (4.0.2 with UCX 1.13: a process waits for a connection's end that the other
/// has left behind). Once all have come here, and after `patience`, this process then stays where it is for two seconds
/// (SIGUSR2), and ends with `status`, as all the others do.
void Finalize(int status, std::chrono::seconds patience = std::chrono::seconds(10));

}  // namespace lockstep::mpi
