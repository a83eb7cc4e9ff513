#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/evidence/process_state.h"

namespace lockstep::inspect {

/// GPUs of this node by nvidia-smi where it is in PATH, InfiniBand ports and network interfaces by /sys/class. A driver
/// that does not answer costs the time until `deadline_monotonic_ns` and is named: a device of kind "gpu" and state
/// "no answer".
std::vector<evidence::DeviceState> ReadDevices(int64_t deadline_monotonic_ns);

extern const std::string kGpuQuery;        ///< What nvidia-smi is asked for; every driver knows these names,
extern const std::string kGpuHealthQuery;  ///< and newer ones these, which begin with them.

/// Lines of `nvidia-smi --query-gpu=QUERY --format=csv,noheader`. A fact is named as in the query, without those that
/// the GPU does not have.
std::vector<evidence::DeviceState> ParseGpuLines(std::string_view text, std::string_view query = kGpuQuery);

/// Ports and interfaces below `root` ("/sys/class").
std::vector<evidence::DeviceState> ReadNetworkDevices(const std::string& root);

}  // namespace lockstep::inspect
