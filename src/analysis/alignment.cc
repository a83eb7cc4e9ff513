#include "analysis/alignment.h"

namespace lockstep::analysis {

void AlignClocks(const Collectives& collectives, model::Run* run) {
  for (const model::LedgerEntry& note : collectives.notes) run->ledger.Add(note);
}

}  // namespace lockstep::analysis
