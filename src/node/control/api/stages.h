#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/stages/step_stages.h"

namespace lockstep::control {

// What a daemon keeps of its node's ranks, and so the most that an answer holds: it fits into 64 MiB as base64.
constexpr uint64_t kMostKeptSteps = 1024;                 ///< Of a rank, the newest.
constexpr size_t kMostKeptRankBytes = size_t{256} << 10;  ///< Of a rank, packed;
constexpr size_t kMostKeptBytes = size_t{32} << 20;       ///< of all ranks: each has an equal part.

/// Whose steps are wanted, and how many.
struct StagesQuery {
  std::string job_id = {};                  ///< "123" is "123.pbs01" too; empty: all jobs.
  std::optional<uint64_t> last_steps = {};  ///< At most so many of a rank, the newest; nullopt: all that are kept.
};

/// The newest steps of one process.
struct RankSteps {
  std::string job_id = {};
  std::string user = {};
  int32_t rank = 0;
  std::optional<int32_t> world_size = {};
  int32_t pid = 0;
  uint64_t seen_step_count = 0;    ///< Since it began; these are the last of them.
  uint64_t kept_step_count = 0;    ///< That the daemon still has; not more than were asked for are here.
  uint64_t lost_record_count = 0;  ///< Did not fit into the file, or could not be followed.
  bool ended_in_order = false;
  bool has_device_times = false;         ///< As model::RankStages.
  bool hides_communication = false;      ///< As model::RankStages.
  std::vector<std::string> groups = {};  ///< As model::RankStages.
  std::string steps = {};                ///< PackStep() of each, in order.
};

/// The steps of a node's ranks.
struct NodeStages {
  std::string host = {};
  int64_t now_unix_ns = 0;
  std::vector<RankSteps> ranks = {};  ///< By pid; those that have steps.
};

/// A step in a few bytes: varints of its number and start (zigzag), of how many spans it has, and of each span
/// `duration_ns * 16 + stage`; of a wait that is not for all ranks with 15 as its stage, and behind it
/// `group * 2 + is_pairwise`. Empty where a time is negative or longer than 18 years.
std::string PackStep(const model::StepStages& step);
/// Steps as they were packed. Errors: kCorruptData, for any other bytes.
Result<std::vector<model::StepStages>> UnpackSteps(std::string_view bytes);

/// The path with its query of GET /api/v1/stages.
std::string StagesPath(const StagesQuery& query);
/// Of the part behind '?'. Errors: kInvalidArgument.
Result<StagesQuery> ReadStagesQuery(std::string_view text);

std::string ToJson(const NodeStages& stages);
/// Errors: as those of json.h. `steps` are bytes yet: UnpackSteps() tells whether they are steps.
Result<NodeStages> ReadNodeStages(std::string_view json);

}  // namespace lockstep::control
