#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/stages/rank_memory.h"
#include "model/stages/step_stages.h"

namespace lockstep::model {

inline constexpr size_t kMostGroups = 1024;  ///< Of a rank.

/// The steps of one rank of a job, and what is known of who recorded them.
struct RankStages {
  int32_t rank = 0;
  std::optional<int32_t> world_size = {};
  std::string host = {};
  std::string program = {};
  int64_t process_id = 0;
  std::string source = {};               ///< The file.
  std::vector<StepStages> steps = {};    ///< Their numbers grow.
  std::vector<std::string> groups = {};  ///< Of process groups that are not the whole job: see WaitOf.
  RankMemory memory = {};
  uint64_t dropped_record_count = 0;   ///< That did not fit into the file.
  uint64_t impossible_step_count = 0;  ///< Of a damaged file; not among the steps.
  bool ended_in_order = false;         ///< False: it runs, or was killed.
  bool has_device_times = false;       ///< Of its steps, as the device passed through them; not the host's.
  bool hides_communication = false;    ///< Its waits for collectives lie in other stages and cannot be told from them.
};

}  // namespace lockstep::model
