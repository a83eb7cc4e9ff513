#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "inside/launch/environment.h"

namespace lockstep::rendezvous {

/// Which rank this process is, and where ranks meet.
struct JobPlace {
  uint32_t rank = 0;
  uint32_t world_size = 1;
  std::string address;         ///< Where rank 0 is: MASTER_ADDR.
  std::string listen_address;  ///< Where rank 0 listens: the same, or LOCKSTEP_BENCH_LISTEN.
  uint16_t first_port = 0;     ///< The first of kPortCount.
  uint64_t job = 0;            ///< A digest of what the job's ranks have in common and others hardly do.
};

/// Rank 0 takes the first free port of these: MASTER_PORT + 1 and those that follow. MASTER_PORT itself is where
/// torchrun's own store listens.
inline constexpr uint16_t kPortCount = 8;

/// From RANK and WORLD_SIZE, or what the innermost launcher sets in their place, MASTER_ADDR and MASTER_PORT (29500);
/// LOCKSTEP_BENCH_TOKEN is part of the digest where it is set. Errors: kFailedPrecondition, with the variables that are
/// missing.
Result<JobPlace> PlaceFromEnvironment(const launch::Environment& environment);

}  // namespace lockstep::rendezvous
