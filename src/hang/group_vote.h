#pragma once

#include <cstdint>

#include "hang/call_history.h"
#include "hang/mismatch.h"

namespace lockstep::hang {

/// Has the members of a group vote on what is called at `sequence`, sibling groups that did the same until then with
/// them; earlier rounds, sizes that contradict each other and calls that nobody makes elsewhere break ties. One party
/// and no deviants where all agree. At least one member or sibling has to have called something there.
/// Cost: O(members of the group and its siblings), of a tie O(their calls).
Mismatch VoteAt(const CallHistory& history, uint32_t group, int64_t sequence);

}  // namespace lockstep::hang
