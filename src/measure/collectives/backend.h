#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/communicator.h"
#include "base/result.h"
#include "measure/collectives/operation.h"

namespace lockstep::collective_bench {

/// Who carries out collectives: MPI, NCCL, PyTorch. All calls are collective. Not thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;  ///< "MPI (Open MPI v4.1.4)".
  /// What this rank computes on, where that is not the host: "device 0, NVIDIA H100 80GB HBM3 [0000:0f:00.0]".
  virtual std::string device() const { return {}; }
  virtual Communicator& communicator() = 0;

  /// Whether it has the operation so. Broadcast, for example, has but one buffer in MPI.
  virtual bool Has(Operation operation, bool in_place) const = 0;
  /// Why it has the operation in neither form.
  virtual std::string WhyNot(Operation /*operation*/) const { return "the backend has no such operation"; }
  /// The most elements that one such call takes in a buffer; more is not measured.
  virtual size_t max_count(const Call& call) const = 0;
  /// Memory that calls read and write. Errors: kLimitExceeded when there is not so much.
  virtual Result<void*> Allocate(size_t bytes) = 0;
  virtual void Free(void* memory) = 0;
  virtual Status CopyIn(void* to, const void* from, size_t bytes) = 0;
  virtual Status CopyOut(void* to, const void* from, size_t bytes) = 0;
  /// Where, in elements of the only buffer, a call in place reads this rank's part, and leaves its result.
  virtual size_t InPlaceSendOffset(const Call& call) const = 0;
  virtual size_t InPlaceReceiveOffset(const Call& call) const = 0;

  /// Whether Run() only queues, so that the time of one call among several is not known.
  virtual bool is_queued() const { return false; }
  /// Carries it out, or puts it into a queue that Wait() waits for. In place `send` is `receive`.
  virtual Status Run(const Call& call, const void* send, void* receive) = 0;
  virtual Status Wait() = 0;
  virtual Status Barrier() = 0;

  /// Of two ranks: one sends, the other receives. Others do nothing.
  virtual Status Transfer(int from, int to, void* memory, size_t bytes) = 0;
};

}  // namespace lockstep::collective_bench
