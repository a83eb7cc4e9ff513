#include "node/agent/gpu/gpu_metrics.h"

namespace lockstep::agent {

const MetricSpecs& GpuMetricSpecs() {
  static const MetricSpecs specs = {
      {"lockstep_gpu_info", "gauge", "host,gpu,gi,uuid,model,vendor,driver_version,pci_bus_id,mig_profile",
       "1; what a GPU or MIG instance is."},
      {"lockstep_gpus_visible", "gauge", "host", "GPUs that the driver lets the daemon see and has not lost."},
      {"lockstep_gpus_expected", "gauge", "host",
       "NVIDIA GPUs that there should be: by the settings, or the most that the daemon has seen."},
      {"lockstep_gpu_unresponsive", "gauge", "host,gpu",
       "1: a call of the driver for this GPU did not return in 5 s; gpu is driver where it was for none of them."},
      {"lockstep_gpu_utilization_ratio", "gauge", "host,gpu",
       "Share of the driver's last sample period in which a kernel ran; not on a GPU divided by MIG."},
      {"lockstep_gpu_sm_active_ratio", "gauge", "host,gpu,gi",
       "Share of time and multiprocessors that had work since the last reading (GPM: Hopper and later)."},
      {"lockstep_gpu_tensor_active_ratio", "gauge", "host,gpu,gi", "The same of the tensor cores."},
      {"lockstep_gpu_dram_active_ratio", "gauge", "host,gpu,gi", "Bandwidth of device memory used, of what it has."},
      {"lockstep_gpu_memory_used_bytes", "gauge", "host,gpu,gi", "Device memory in use."},
      {"lockstep_gpu_memory_total_bytes", "gauge", "host,gpu,gi", "Device memory."},
      {"lockstep_gpu_memory_reserved_bytes", "gauge", "host,gpu,gi",
       "Device memory that driver and firmware keep for themselves."},
      {"lockstep_gpu_temperature_celsius", "gauge", "host,gpu,sensor", "Temperature of gpu or memory."},
      {"lockstep_gpu_energy_joules_total", "counter", "host,gpu", "Energy used since the driver was loaded."},
      {"lockstep_gpu_power_limit_watts", "gauge", "host,gpu", "Power limit in force."},
      {"lockstep_gpu_clock_hertz", "gauge", "host,gpu,domain", "Clock of graphics, sm, memory, video."},
      {"lockstep_gpu_throttle_seconds_total", "counter", "host,gpu,reason",
       "How long clocks were held down for power, thermal, sync_boost, board, by the driver's own count; hw_thermal "
       "and "
       "hw_power_brake (and what the driver does not count) by whether it said so at each reading."},
      {"lockstep_gpu_xid_events_total", "counter", "host,gpu,xid",
       "Xid events since the daemon started; they stay when the GPU is gone."},
      {"lockstep_gpu_ecc_errors_total", "counter", "host,gpu,error",
       "Memory errors since the driver was loaded: corrected, uncorrected."},
      {"lockstep_gpu_remapped_rows_total", "counter", "host,gpu,error",
       "Rows of memory replaced after corrected or uncorrected errors."},
      {"lockstep_gpu_row_remap_pending", "gauge", "host,gpu", "1: a row is to be replaced at the next reset."},
      {"lockstep_gpu_row_remap_failure", "gauge", "host,gpu", "1: a row could not be replaced."},
      {"lockstep_gpu_pcie_receive_bytes_total", "counter", "host,gpu", "Bytes to the GPU over PCIe."},
      {"lockstep_gpu_pcie_transmit_bytes_total", "counter", "host,gpu", "Bytes from the GPU over PCIe."},
      {"lockstep_gpu_pcie_replays_total", "counter", "host,gpu", "Packets sent again over PCIe."},
      {"lockstep_gpu_nvlink_receive_bytes_total", "counter", "host,gpu", "Bytes to the GPU over all its NVLinks."},
      {"lockstep_gpu_nvlink_transmit_bytes_total", "counter", "host,gpu", "Bytes from the GPU over all its NVLinks."},
      {"lockstep_gpu_nvlink_errors_total", "counter", "host,gpu,error",
       "Errors of all its NVLinks, by what the generation counts: replay, recovery, crc and others."},
  };
  return specs;
}

}  // namespace lockstep::agent
