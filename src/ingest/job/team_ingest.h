#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/team.h"
#include "ingest/job/ingest_run.h"
#include "model/run.h"
#include "model/team_holders.h"

namespace lockstep::ingest {

/// IngestRun by several processes: every file is read by one of those that see it, and its events stay there. The run
/// that the root gets has every rank's facts and no events (model::RankTrace::elsewhere, model::Run::holders); names,
/// ranks, windows and ledger are those of IngestRun, whatever the number of processes.
/// A file that several nodes share is one file: path, size, time of change and inode are the same. Files that only some
/// nodes have are read there.
class TeamIngest {
 public:
  /// Registers the questions; every process makes one. `default_thread_count`: threads of this process where the
  /// options leave it open. `team` and `runs` outlive it.
  TeamIngest(Team* team, model::HeldRuns* runs, uint32_t default_thread_count);
  ~TeamIngest();

  /// Root. Errors: those of IngestRun; a path is missing when no process has it. Progress is that of the root's own
  /// share. The result must not outlive the team.
  Result<model::Run> Run(const std::vector<std::string>& paths, const IngestOptions& options);

 private:
  class Share;
  Team& team_;
  std::unique_ptr<Share> share_;
  uint32_t next_run_ = 0;
};

}  // namespace lockstep::ingest
