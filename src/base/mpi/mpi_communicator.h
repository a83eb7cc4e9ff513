#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/communicator.h"

namespace lockstep::mpi {

/// MPI_COMM_WORLD. Between MPI_Init and MPI_Finalize; only the thread that initialised calls it. Processes that wait
/// sleep instead of spinning, since the root's last part is its own. A lost process ends the program: MPI's error
/// handler or the launcher sees to it.
class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator();

  size_t process() const override { return process_; }
  size_t process_count() const override { return process_count_; }
  void Broadcast(std::string* bytes) override;
  std::vector<std::string> Gather(std::string bytes) override;
  Traffic traffic() const override { return traffic_; }

 private:
  size_t process_ = 0;
  size_t process_count_ = 1;
  Traffic traffic_;
};

/// Ends all processes of the job with this status, once the launcher has read what this one wrote to standard error.
void AbortJob(int status);

/// Processes of the program on this process's node.
size_t ProcessesOnNode();

}  // namespace lockstep::mpi
