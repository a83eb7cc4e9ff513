#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/team.h"
#include "ingest/job/assemble_run.h"
#include "ingest/job/file_ingest.h"
#include "model/name_table.h"

namespace lockstep::ingest {

/// The joins of AssembleRun by processes that hold the events: each is carried out where the trace is that takes the
/// other over, in the order of the joins. What that process has not read itself is brought to it, one trace at a time.
/// A process's part of it; every process makes one.
class TeamJoins {
 public:
  /// What this process has read, until it is placed; both are those of the TeamIngest.
  struct Held {
    std::vector<FileOutcome>* outcomes = nullptr;
    model::NameTable* names = nullptr;
  };

  /// Registers the questions. `team` and what `held` points to outlive it.
  TeamJoins(Team* team, Held held);

  /// By file of the job: which process read it, and as which of its files.
  using ReadAs = std::vector<std::pair<uint32_t, uint32_t>>;
  /// Root. Out: parallel to `joins`.
  std::vector<JoinedTrace> Run(const std::vector<TraceJoin>& joins, const ReadAs& read_as);
  /// Before other files are read.
  void Forget() { turned_.clear(); }

  /// A trace, by who read it.
  struct Place {
    uint32_t process = 0;
    uint32_t file = 0;
    uint32_t content = 0;
  };
  struct GiveRequest {
    Place from;
    bool is_nccl_ring = false;
  };
  /// Empty from all but the one that has it.
  struct Given {
    std::string trace;               ///< Bytes of a RankTrace with its events.
    std::vector<std::string> names;  ///< By the NameId that it uses.
  };
  struct Step {
    Place from;
    Place into;
    SpanScope scope = SpanScope::kOwnTime;
    bool is_nccl_ring = false;
    Given given;  ///< Where another process has `from`.
  };
  struct JoinRequest {
    std::vector<Step> steps;
  };

 private:
  model::RankTrace& At(const Place& place);
  /// The trace as others take it over.
  model::RankTrace& Taken(const Place& from, bool is_nccl_ring);
  Given Give(const GiveRequest& request);
  /// Parallel to those steps whose `into` is here.
  std::vector<JoinedTrace> Join(const JoinRequest& request);

  Team& team_;
  Held held_;
  std::set<std::pair<uint32_t, uint32_t>> turned_;  ///< Rings that were made annotations already.
};

}  // namespace lockstep::ingest
