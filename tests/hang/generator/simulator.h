#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "program.h"

namespace lockstep::hang_test {

/// One operation that a rank issued.
struct Issued {
  const Action* action = nullptr;
  int64_t sequence = 0;      ///< Collectives of the group.
  int64_t p2p_sequence = 0;  ///< Sends and receives of the group.
  int64_t operation_id = 0;
  int64_t created_ns = 0;
  int64_t arrived_ns = -1;  ///< On the device, or in the call.
  int64_t completed_ns = -1;
  bool failed = false;
};

enum class RankEnd : uint8_t { kDone, kInCall, kInSync, kStuck, kDead, kFailed };

struct RankRun {
  std::vector<Issued> issued;  ///< In order.
  size_t device_head = 0;      ///< Of issued: the first that the device has not finished.
  size_t next = 0;             ///< In the program.
  int64_t host_ns = 0;
  int64_t device_ns = 0;
  bool device_dead = false;
  bool in_call = false;                                                ///< Issued, and not returned.
  std::map<int32_t, int64_t> sequences, p2p_sequences, operation_ids;  ///< By group.
  RankEnd end = RankEnd::kDone;
};

struct Run {
  std::vector<RankRun> ranks;
  int64_t end_ns = 0;
};

/// Executes the programs until nobody can go on. Calls of a group meet by their number in it; sends and receives by
/// their order between the two. Unlike calls never complete.
Run Simulate(const JobShape& shape, const Plan& plan);

}  // namespace lockstep::hang_test
