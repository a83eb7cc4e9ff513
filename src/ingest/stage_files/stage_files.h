#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/ledger.h"
#include "model/stages/rank_stages.h"
#include "model/stages/stage_job.h"

namespace lockstep::ingest {

/// The stages of a job's steps, as its processes recorded them.
struct StageFiles {
  std::vector<model::RankStages> ranks = {};  ///< By rank, each once.
  model::Ledger ledger = {};                  ///< Files that were left out, and what is missing.
  model::StageJob facts = {};                 ///< What `lockstep run` was told of it.
};

/// Reads what `lockstep run --stages` and liblockstep write: span traces (*.spans), files or those below folders.
/// Of several processes of one rank the one that marked steps last counts (torchrun starts ranks again). Files without
/// steps are those of helpers, and are passed over.
/// Errors: kNotFound (a path is not there, or no file has steps).
Result<StageFiles> ReadStageFiles(const std::vector<std::string>& paths);

/// The same of ranks that were read already, from wherever: all have steps, and numbers that grow. What is missing and
/// what was lost is added to `ledger`; `missing`: how grave it is that ranks are not there.
StageFiles JoinRanks(std::vector<model::RankStages> ranks, model::Ledger ledger, model::Severity missing);

/// Leaves out steps that overlap the one before, or that would make the whole longer than 30 years: the file is
/// damaged, and what adds them up could not. Returns how many.
uint64_t DropImpossibleSteps(std::vector<model::StepStages>* steps);

}  // namespace lockstep::ingest
