#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "broken_job.h"

namespace lockstep::hang_test {

/// A process group of the simulated job.
struct SimGroup {
  std::string name;
  std::string description;
  std::vector<int32_t> ranks;
};

/// One line of a rank's program.
struct Action {
  enum class Kind : uint8_t { kWork, kCollective, kSend, kRecv, kSync };
  Kind kind = Kind::kWork;
  int32_t group = 0;
  int32_t peer = -1;      ///< Global rank.
  int64_t work_ns = 0;    ///< Of kWork.
  std::string operation;  ///< Without backend.
  std::vector<int64_t> input, output;
  std::string dtype = "Float";
  std::string function;
  int32_t line = 0;
  int32_t launch = 0;       ///< Same non-zero number: one coalesced launch with its neighbours.
  bool stops_here = false;  ///< The fault: never gets past it.
  bool dies_here = false;
  bool device_dies = false;   ///< Enqueued, and the device never completes it.
  bool never_begins = false;  ///< Enqueued, and the device never comes to it.
};

struct Plan {
  std::vector<SimGroup> groups;
  std::vector<std::vector<Action>> programs;  ///< By rank.
  std::vector<int32_t> culprits;
};

/// The programs of a Megatron-like training job, with the fault put in.
Plan MakePlan(const JobShape& shape, Fault fault, std::mt19937_64& random);

}  // namespace lockstep::hang_test
