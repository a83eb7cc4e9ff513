#pragma once

#include "analysis/hang/call_history.h"
#include "analysis/hang/mismatch.h"

namespace lockstep::hang {

/// Decides the kind of a mismatch whose parties, signatures and margin are known: by the sites of the calls, by the
/// deviants' next calls, and by the others' next calls or, if they have none yet, those of earlier rounds.
/// Sets `kind` and `deviant_goes_on_as_others_later`.
void TellKind(const CallHistory& history, Mismatch& mismatch);

}  // namespace lockstep::hang
