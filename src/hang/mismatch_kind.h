#pragma once

#include "hang/call_history.h"
#include "hang/mismatch.h"

namespace lockstep::hang {

/// Tells of a mismatch whose parties, signatures and margin are known what kind it is: by where the calls were made, by
/// what the deviants called next and by what the others called next or, where nobody came so far, in earlier rounds.
/// Sets `kind` and `deviant_goes_on_as_others_later`.
void TellKind(const CallHistory& history, Mismatch& mismatch);

}  // namespace lockstep::hang
