#pragma once

#include <string>

#include "analysis/collectives.h"
#include "analysis/wait_states/wait_states.h"
#include "model/run.h"

namespace lockstep::analysis {

/// "rank 1's kernel 'sgemm' took 3.2 ms where its peers' took 1.1 ms", "rank 3's CPU was in gc.collect for ...".
std::string CauseText(const model::Run& run, const RootCauseRow& cause);

/// "rank 6 waited 41 ms in all_reduce 12 of group tp1 for rank 5, which waited 40 ms in send_recv 3 of group pp for
/// rank 1, whose kernel ...".
std::string ChainText(const model::Run& run, const Collectives& collectives, const RootCauseRow& cause,
                      const WaitChain& chain);

/// "chronic", "every 4th step", "once, in step 7", "in 3 of 20 steps".
std::string PatternText(const RootCauseRow& cause);

/// The causes of the waiting, in sentences: the named ranks with share and recurrence, or that no rank is named, and
/// the waiting that began before the recording. Text, page and JSON use it.
std::string WaitVerdictText(const model::Run& run, const WaitStates& states);

}  // namespace lockstep::analysis
