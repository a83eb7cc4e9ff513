// Goes when Diagnose lands: until then `lockstep hang` links and says that it cannot tell.
#include "hang/diagnosis.h"

namespace lockstep::hang {

Diagnosis Diagnose(const evidence::JobEvidence& job, const DiagnoseOptions& /*options*/) {
  Diagnosis diagnosis;
  diagnosis.verdict.explanation = "Diagnosis is not part of this build yet.";
  diagnosis.world_size = job.world_size;
  diagnosis.missing = job.missing;
  diagnosis.problems = job.problems;
  for (const evidence::RankEvidence& rank : job.ranks) {
    hang::RankState state;
    state.rank = rank.rank;
    state.host = rank.host;
    state.pid = rank.pid;
    state.liveness = rank.liveness;
    state.has_record = rank.record.has_value();
    state.has_stacks = !rank.stacks.empty();
    state.has_log = !rank.log_file.empty();
    diagnosis.ranks.push_back(state);
  }
  return diagnosis;
}

}  // namespace lockstep::hang
