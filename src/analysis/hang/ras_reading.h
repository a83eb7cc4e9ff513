#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/hang/job_view.h"

namespace lockstep::hang {

/// A communicator of which some ranks launched fewer operations than others, by the newest answer of RAS. Launched is
/// not completed: a rank that is ahead has only enqueued more.
struct RasLag {
  std::string communicator;
  std::string operation;         ///< "AllReduce"; "operations": several, or the text does not say.
  std::vector<int32_t> members;  ///< Ascending; ranks of the job where `is_mapped`, else of the communicator.
  std::vector<int32_t> late;     ///< The same. Launched fewer; empty where `differs`.
  std::vector<int32_t> odd;      ///< Where `differs`: the few that launched others.
  int64_t least = 0;             ///< Launched by the last.
  int64_t most = 0;              ///< And by the first.
  bool differs = false;          ///< As many launched, but of other operations.
  bool is_mapped = false;
  int answers = 1;      ///< So many in a row show just these counts.
  int64_t over_ns = 0;  ///< From the first to the last of them; 0 = unknown.
  std::string source;
  bool StandsStill() const { return answers > 1; }
};

/// A rank that RAS could not reach.
struct RasLoss {
  int32_t rank = -1;  ///< -1 = not told: `pid` and `host` are.
  bool is_mapped = false;
  bool is_dead = false;  ///< Given up by RAS: no answer for a minute.
  int32_t pid = 0;
  std::string host = {};
  std::string communicator = {};
  std::vector<int32_t> peers = {};  ///< Other members; ranks of the job where `is_mapped`.
  std::string source = {};
};

/// What all answers of RAS say of the job's ranks. A rank that is not here may still be stuck: RAS says OK of jobs that
/// hang.
struct RasReading {
  std::vector<RasLag> lags;       ///< By communicator.
  std::vector<RasLoss> losses;    ///< Each rank once.
  std::vector<int32_t> laggards;  ///< In communicators without progress: late, and ahead in no other one. Job's ranks.
};

/// A communicator's ranks become the job's by their process ids where those are known, by their numbers where the
/// communicator is as large as the job.
RasReading ReadRas(const JobView& view);

}  // namespace lockstep::hang
