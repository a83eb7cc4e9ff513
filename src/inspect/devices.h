#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/process_state.h"

namespace lockstep::inspect {

/// GPUs of this node by nvidia-smi where it is in PATH, InfiniBand ports and network interfaces by /sys/class. A driver
/// that does not answer costs the time until `deadline_monotonic_ns` and is named: a device of kind "gpu" and state
/// "no answer".
std::vector<evidence::DeviceState> ReadDevices(int64_t deadline_monotonic_ns);

/// Lines of `nvidia-smi --query-gpu=... --format=csv,noheader`, whose columns are kGpuQuery's.
std::vector<evidence::DeviceState> ParseGpuLines(std::string_view text);
extern const std::string kGpuQuery;

/// Ports and interfaces below `root` ("/sys/class").
std::vector<evidence::DeviceState> ReadNetworkDevices(const std::string& root);

}  // namespace lockstep::inspect
