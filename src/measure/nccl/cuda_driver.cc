#include "measure/nccl/cuda_driver.h"

#include <fmt/format.h>

namespace lockstep::nccl_bench {

Result<CudaDriver> CudaDriver::Open() {
  CudaDriver driver;
  auto library = DynamicLibrary::Open({"libcuda.so.1"});
  if (!library) {
    return Error{.code = ErrorCode::kNotFound,
                 .message = fmt::format("{}; it comes with NVIDIA's driver: run this on a node with a device, in a "
                                        "container with its devices passed through",
                                        library.error().message)};
  }
  driver.library = std::move(*library);
  DynamicLibrary& from = driver.library;
  RETURN_IF_ERROR(from.Find("cuInit", &driver.init));
  RETURN_IF_ERROR(from.Find("cuDriverGetVersion", &driver.driver_get_version));
  RETURN_IF_ERROR(from.Find("cuGetErrorName", &driver.get_error_name));
  RETURN_IF_ERROR(from.Find("cuGetErrorString", &driver.get_error_string));
  RETURN_IF_ERROR(from.Find("cuDeviceGetCount", &driver.device_get_count));
  RETURN_IF_ERROR(from.Find("cuDeviceGet", &driver.device_get));
  RETURN_IF_ERROR(from.Find("cuDeviceGetName", &driver.device_get_name));
  RETURN_IF_ERROR(from.Find("cuDeviceGetPCIBusId", &driver.device_get_pci_bus_id));
  // The second form tells instances of a divided device (MIG) apart; it is of CUDA 11.4.
  if (!from.Find("cuDeviceGetUuid_v2", &driver.device_get_uuid)) {
    RETURN_IF_ERROR(from.Find("cuDeviceGetUuid", &driver.device_get_uuid));
  }
  RETURN_IF_ERROR(from.Find("cuDevicePrimaryCtxRetain", &driver.primary_context_retain));
  RETURN_IF_ERROR(from.Find("cuCtxSetCurrent", &driver.context_set_current));
  RETURN_IF_ERROR(from.Find("cuStreamCreate", &driver.stream_create));
  RETURN_IF_ERROR(from.Find("cuStreamQuery", &driver.stream_query));
  RETURN_IF_ERROR(from.Find("cuMemAlloc_v2", &driver.memory_allocate));
  RETURN_IF_ERROR(from.Find("cuMemFree_v2", &driver.memory_free));
  RETURN_IF_ERROR(from.Find("cuMemcpyHtoDAsync_v2", &driver.copy_to_device));
  RETURN_IF_ERROR(from.Find("cuMemcpyDtoHAsync_v2", &driver.copy_to_host));
  RETURN_IF_ERROR(driver.Check(driver.init(0), "cuInit"));
  RETURN_IF_ERROR(driver.Check(driver.driver_get_version(&driver.version), "cuDriverGetVersion"));
  RETURN_IF_ERROR(driver.Check(driver.device_get_count(&driver.device_count), "cuDeviceGetCount"));
  if (driver.device_count < 1) {
    return Error{.code = ErrorCode::kFailedPrecondition,
                 .message = "the driver shows no device: see nvidia-smi and CUDA_VISIBLE_DEVICES"};
  }
  return driver;
}

Status CudaDriver::Check(CudaResult result, const char* call) const {
  if (result == kCudaSuccess) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  get_error_name(result, &name);
  get_error_string(result, &text);
  return Error{.code = result == kCudaOutOfMemory ? ErrorCode::kLimitExceeded : ErrorCode::kFailedPrecondition,
               .message = fmt::format("{}: {} ({}){}", call, name == nullptr ? "error" : name,
                                      text == nullptr ? fmt::to_string(static_cast<int>(result)) : text,
                                      result == kCudaOutOfMemory ? "" : "; see nvidia-smi")};
}

}  // namespace lockstep::nccl_bench
