#pragma once

#include <cstdint>

namespace lockstep::analysis {

/// The hash of what `seed` is the hash of with `value` behind it.
constexpr uint64_t MixHash(uint64_t seed, uint64_t value) {
  uint64_t h = seed ^ (value + 0x9E3779B97F4A7C15U + (seed << 6) + (seed >> 2));
  h *= 0xFF51AFD7ED558CCDU;
  return h ^ (h >> 33);
}

}  // namespace lockstep::analysis
