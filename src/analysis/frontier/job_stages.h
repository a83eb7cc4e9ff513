#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/frontier/accounting.h"
#include "analysis/frontier/groups.h"
#include "analysis/frontier/over_time.h"
#include "analysis/frontier/rounds.h"
#include "analysis/frontier/verdict.h"
#include "analysis/rank_memory/rank_memory.h"
#include "model/ledger.h"
#include "model/stages/rank_stages.h"
#include "model/stages/stage_job.h"

namespace lockstep::frontier {

/// Where the time of steps went, and who cost it what.
struct StepsAccounting {
  Rounds rounds = {};                  ///< Of all ranks.
  std::vector<Accounting> parts = {};  ///< AccountParts()
  Accounting account = {};             ///< Their sum. Who cost what is counted in whichever group it was most.
  Accounting as_one = {};              ///< The same, counted where all ranks meet alone.
  std::vector<Group> groups = {};      ///< AccountGroups()
};
StepsAccounting AccountSteps(const SharedSteps& steps, const std::vector<model::RankStages>& ranks,
                             const std::vector<std::string>& group_names);

/// What the stages of a job's ranks say: the answer of `lockstep stages`.
struct JobStages {
  std::vector<model::RankStages> ranks;
  std::vector<std::string> group_names;  ///< NumberGroups() of these ranks.
  Accounting account;                    ///< StepsAccounting::account
  std::vector<Group> groups;             ///< None: all ranks meet as one.
  bool is_pipeline = false;  ///< Ranks wait for each other in pairs, never all of them or of a group at once.
  Verdict verdict;
  std::optional<size_t> group_idx;  ///< In which the verdict's straggler is awaited; nullopt: by all ranks.
  OverTime over_time;
  rank_memory::Memory memory;
  model::Ledger ledger;
  model::StageJob facts = {};

  /// As the ranks know it, or how many there are.
  int64_t world_size() const;
};

/// `ranks`: each once. Where one of them hides its waits for collectives, those of all count as other: what one rank
/// spends in a stage is compared with what the others spend in it.
JobStages AssessJob(std::vector<model::RankStages> ranks, model::Ledger ledger, model::StageJob facts = {});

}  // namespace lockstep::frontier
