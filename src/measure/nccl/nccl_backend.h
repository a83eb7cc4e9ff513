#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/communicator.h"
#include "inside/launch/environment.h"
#include "measure/collectives/backend.h"
#include "measure/nccl/cuda_driver.h"
#include "measure/nccl/nccl_library.h"
#include "measure/nccl/watchdog.h"

namespace lockstep::nccl_bench {

struct NcclOptions {
  std::string library_path = {};  ///< Empty: looked for, see NcclCandidates().
  std::chrono::seconds timeout{
      300};  ///< The longest that a rank waits for the others in one call or one queue of calls.
};

/// NCCL's collectives over one communicator of all ranks, on a device each, queued on one stream. Libraries are opened
/// at run time. A rank that waits longer than the timeout aborts its communicator and fails; where NCCL itself does not
/// come back, the process ends with status 1 (Watchdog).
class NcclBackend final : public collective_bench::Backend {
 public:
  /// Collective over `communicator`, which must outlive this. The device is the local rank (as the launcher says, else
  /// by host name) modulo the devices that the process sees. Errors, the same on all ranks, after which none can go on:
  /// no library, no driver, no device, two ranks on one device, versions that differ, what NCCL says.
  static Result<std::unique_ptr<NcclBackend>> Create(Communicator* communicator, const launch::Environment& environment,
                                                     const NcclOptions& options);
  ~NcclBackend() override;

  std::string name() const override;
  std::string device() const override { return device_text_; }
  Communicator& communicator() override { return *communicator_; }
  bool Has(collective_bench::Operation operation, bool in_place) const override;
  size_t max_count(const collective_bench::Call& /*call*/) const override { return SIZE_MAX; }
  Result<void*> Allocate(size_t bytes) override;
  void Free(void* memory) override;
  Status CopyIn(void* to, const void* from, size_t bytes) override;
  Status CopyOut(void* to, const void* from, size_t bytes) override;
  size_t InPlaceSendOffset(const collective_bench::Call& call) const override;
  size_t InPlaceReceiveOffset(const collective_bench::Call& call) const override;
  bool is_queued() const override { return true; }
  Status Run(const collective_bench::Call& call, const void* send, void* receive) override;
  Status Wait() override;
  Status Barrier() override;
  Status Transfer(int from, int to, void* memory, size_t bytes) override;

 private:
  NcclBackend(Communicator* communicator, const NcclOptions& options);

  Status OpenAll(const launch::Environment& environment, int32_t local_rank);
  Status CheckDevices();
  Status Connect();
  /// kNcclSuccess is not an error; others with NCCL's own word.
  Status Check(NcclResult result, const char* call) const;
  /// Aborts the communicator, since the others do not know. An error of this rank alone.
  Error Abandon(std::string message);

  Communicator* const communicator_;
  const NcclOptions options_;
  const int rank_;
  const int size_;
  CudaDriver cuda_;
  NcclLibrary nccl_;
  std::string device_text_;
  std::string device_identity_;
  CudaStream stream_ = nullptr;
  NcclComm comm_ = nullptr;
  CudaAddress barrier_memory_ = 0;
  const char* queued_ = "";  // What Wait() waits for.
  Watchdog watchdog_;
};

}  // namespace lockstep::nccl_bench
