#pragma once

#include <mpi.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "base/mpi/mpi_communicator.h"
#include "measure/collectives/backend.h"

namespace lockstep::mpi_bench {

/// MPI's blocking collectives over MPI_COMM_WORLD, on memory of the host. Errors of MPI end the program, as is its
/// default.
class MpiBackend final : public collective_bench::Backend {
 public:
  MpiBackend() = default;
  MpiBackend(const MpiBackend&) = delete;
  MpiBackend& operator=(const MpiBackend&) = delete;
  ~MpiBackend() override;
  std::string name() const override;
  Communicator& communicator() override { return communicator_; }
  bool Has(collective_bench::Operation operation, bool in_place) const override;
  /// MPI counts in int: what only moves goes in blocks beyond that, what reduces needs MPI-4's large counts.
  size_t max_count(const collective_bench::Call& call) const override;
  Result<void*> Allocate(size_t bytes) override;
  void Free(void* memory) override;
  Status CopyIn(void* to, const void* from, size_t bytes) override;
  Status CopyOut(void* to, const void* from, size_t bytes) override;
  size_t InPlaceSendOffset(const collective_bench::Call& call) const override;
  size_t InPlaceReceiveOffset(const collective_bench::Call& /*call*/) const override { return 0; }
  Status Run(const collective_bench::Call& call, const void* send, void* receive) override;
  Status Wait() override { return {}; }
  Status Barrier() override;
  Status Transfer(int from, int to, void* memory, size_t bytes) override;

 private:
  /// A call's count and type as MPI takes them.
  struct Shape {
    int count = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
  };
  Shape ShapeOf(const collective_bench::Call& call);
  bool IsLarge(const collective_bench::Call& call) const;

  mpi::MpiCommunicator communicator_;
  // Types of so many elements, kept until the end, by element and number.
  std::map<std::pair<collective_bench::DataType, size_t>, MPI_Datatype> blocks_;
};

}  // namespace lockstep::mpi_bench
