#pragma once

#include <cstdint>

#include "analysis/hang/call_history.h"
#include "analysis/hang/mismatch.h"

namespace lockstep::hang {

/// Lets the members of a group vote on the call at `sequence`, together with sibling groups whose calls agreed so far.
/// Ties are broken by earlier rounds, contradicting sizes, and calls that no other group makes. If all agree there is
/// one party and no deviant. At least one member or sibling must have made a call there.
/// Cost: O(members of the group and its siblings), of a tie O(their calls).
Mismatch VoteAt(const CallHistory& history, uint32_t group, int64_t sequence);

}  // namespace lockstep::hang
