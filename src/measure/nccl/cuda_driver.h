#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "measure/nccl/dynamic_library.h"

namespace lockstep::nccl_bench {

using CudaAddress = unsigned long long;
using CudaStream = struct CudaStreamOpaque*;
using CudaContext = struct CudaContextOpaque*;

enum CudaResult : int { kCudaSuccess = 0, kCudaOutOfMemory = 2, kCudaNotReady = 600 };

struct CudaUuid {
  unsigned char bytes[16];
};

/// The part of CUDA's driver interface that is called: nothing of CUDA is needed to build. The driver rather than the
/// runtime, since libcuda.so.1 comes with every driver under this one name, where the runtime is a library of many
/// versions that may be anywhere or inside of others (NCCL has its own). Signatures are those of CUDA 11 to 13.
struct CudaDriver {
  /// Errors: kNotFound when there is no driver, kUnsupported for one that lacks functions, kFailedPrecondition when it
  /// finds no device or does not work.
  static Result<CudaDriver> Open();

  /// kCudaSuccess is not an error. `call` is what was called.
  Status Check(CudaResult result, const char* call) const;

  DynamicLibrary library;
  int version = 0;  ///< 12040 is 12.4.
  int device_count = 0;

  CudaResult (*init)(unsigned flags) = nullptr;
  CudaResult (*driver_get_version)(int* version) = nullptr;
  CudaResult (*get_error_name)(CudaResult error, const char** name) = nullptr;
  CudaResult (*get_error_string)(CudaResult error, const char** text) = nullptr;
  CudaResult (*device_get_count)(int* count) = nullptr;
  CudaResult (*device_get)(int* device, int ordinal) = nullptr;
  CudaResult (*device_get_name)(char* name, int length, int device) = nullptr;
  CudaResult (*device_get_pci_bus_id)(char* id, int length, int device) = nullptr;
  CudaResult (*device_get_uuid)(CudaUuid* uuid, int device) = nullptr;
  CudaResult (*primary_context_retain)(CudaContext* context, int device) = nullptr;
  CudaResult (*context_set_current)(CudaContext context) = nullptr;
  CudaResult (*stream_create)(CudaStream* stream, unsigned flags) = nullptr;
  CudaResult (*stream_query)(CudaStream stream) = nullptr;
  CudaResult (*memory_allocate)(CudaAddress* address, size_t bytes) = nullptr;
  CudaResult (*memory_free)(CudaAddress address) = nullptr;
  CudaResult (*copy_to_device)(CudaAddress to, const void* from, size_t bytes, CudaStream stream) = nullptr;
  CudaResult (*copy_to_host)(void* to, CudaAddress from, size_t bytes, CudaStream stream) = nullptr;
};

}  // namespace lockstep::nccl_bench
