#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::analysis {

/// What a call of the device runtime waits for.
enum class SyncCall : uint8_t {
  kNone,
  kDevice,  ///< All streams.
  kStream,  ///< One stream.
  kEvent,   ///< What lay in a stream before an event was recorded.
  kCopy,    ///< Its own copy, where that one had to be done before the call returned.
};

SyncCall SyncCallOf(std::string_view name);  ///< By name, CUDA and HIP, runtime and driver.

}  // namespace lockstep::analysis
