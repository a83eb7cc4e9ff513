#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "ingest/bytes/byte_source.h"

namespace lockstep::ingest {

/// Stops a decompression bomb: output above ByteLimits, absolutely or as a multiple of the input.
class OutputLimit {
 public:
  OutputLimit(const ByteLimits& limits, std::string name) : limits_(limits), name_(std::move(name)) {}

  /// How much may be produced before Check has to look again: keeps one call from overrunning the absolute limit.
  uint64_t Headroom(uint64_t produced_bytes) const {
    return produced_bytes >= limits_.max_output_bytes ? 1 : limits_.max_output_bytes - produced_bytes + 1;
  }

  /// The error, when `produced_bytes` made of `consumed_bytes` are too many.
  std::optional<Error> Check(uint64_t produced_bytes, uint64_t consumed_bytes) const;

 private:
  ByteLimits limits_;
  std::string name_;
};

}  // namespace lockstep::ingest
