#pragma once

#include <cstddef>
#include <string>

#include "collective_bench/backend.h"
#include "mpi/mpi_communicator.h"

namespace lockstep::mpi_bench {

/// MPI's blocking collectives over MPI_COMM_WORLD, on memory of the host. Errors of MPI end the program, as is its
/// default.
class MpiBackend final : public collective_bench::Backend {
 public:
  std::string name() const override;
  Communicator& communicator() override { return communicator_; }
  bool Has(collective_bench::Operation operation, bool in_place) const override;
  size_t max_count() const override { return INT32_MAX; }  // MPI-3 counts in int.
  Result<void*> Allocate(size_t bytes) override;
  void Free(void* memory) override;
  void CopyIn(void* to, const void* from, size_t bytes) override;
  void CopyOut(void* to, const void* from, size_t bytes) override;
  size_t InPlaceSendOffset(const collective_bench::Call& call) const override;
  size_t InPlaceReceiveOffset(const collective_bench::Call& /*call*/) const override { return 0; }
  Status Run(const collective_bench::Call& call, const void* send, void* receive) override;
  Status Wait() override { return {}; }
  void Barrier() override;
  Status Transfer(int from, int to, void* memory, size_t bytes) override;

 private:
  mpi::MpiCommunicator communicator_;
};

}  // namespace lockstep::mpi_bench
