#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "node/agent/gpu/nvml_abi.h"

namespace lockstep::agent {

/// NVIDIA's management library, opened at run time. A function that this version of it lacks is null: what it would
/// have told is not measured. Any call may hang for ever.
struct NvmlLibrary {
  template <typename... Arguments>
  using Function = nvml::Return (*)(Arguments...);
  using Device = nvml::Device;

  /// Errors: kNotFound (there is no such library, or one without these functions).
  static Result<NvmlLibrary> Open(const std::string& path);
  /// "GPU is lost", or the number.
  std::string TextOf(nvml::Return result) const;

  std::shared_ptr<void> handle;  ///< Shared: copies of this close it together.
  Function<> init = nullptr;
  const char* (*error_string)(nvml::Return) = nullptr;
  Function<char*, unsigned> driver_version = nullptr;
  Function<unsigned*> device_count = nullptr;
  Function<unsigned, Device*> device_by_index = nullptr;
  Function<Device, unsigned*> index_of = nullptr;
  Function<Device, char*, unsigned> uuid = nullptr;
  Function<Device, char*, unsigned> name = nullptr;
  Function<Device, nvml::PciInfo*> pci_info = nullptr;
  Function<Device, nvml::MemoryV2*> memory_v2 = nullptr;
  Function<Device, nvml::Memory*> memory = nullptr;
  Function<Device, nvml::Utilization*> utilization = nullptr;
  Function<Device, int, unsigned*> temperature = nullptr;
  Function<Device, nvml::TemperatureV1*> temperature_v1 = nullptr;
  Function<Device, unsigned long long*> energy_mj = nullptr;
  Function<Device, unsigned*> power_limit_mw = nullptr;
  Function<Device, int, unsigned*> clock_mhz = nullptr;
  Function<Device, unsigned long long*> clocks_event_reasons = nullptr;
  Function<Device, int, nvml::ViolationTime*> violation = nullptr;
  Function<Device, int, int, unsigned long long*> ecc_errors = nullptr;
  Function<Device, unsigned*, unsigned*, unsigned*, unsigned*> remapped_rows = nullptr;
  Function<Device, unsigned*> pcie_replays = nullptr;
  Function<Device, int, nvml::FieldValue*> field_values = nullptr;
  Function<Device, unsigned*, unsigned*> mig_mode = nullptr;
  Function<Device, unsigned*> most_mig_devices = nullptr;
  Function<Device, unsigned, Device*> mig_device_by_index = nullptr;
  Function<Device, unsigned*> gpu_instance_id = nullptr;
  Function<nvml::EventSet*> event_set_create = nullptr;
  Function<Device, unsigned long long, nvml::EventSet> register_events = nullptr;
  Function<nvml::EventSet, nvml::EventData*, unsigned> event_wait = nullptr;
  Function<Device, nvml::GpmSupport*> gpm_support = nullptr;
  Function<nvml::GpmSample*> gpm_sample_alloc = nullptr;
  Function<nvml::GpmSample> gpm_sample_free = nullptr;
  Function<Device, nvml::GpmSample> gpm_sample_get = nullptr;
  Function<Device, unsigned, nvml::GpmSample> gpm_mig_sample_get = nullptr;
  Function<nvml::GpmMetricsGet*> gpm_metrics_get = nullptr;
};

}  // namespace lockstep::agent
