#include "analysis/collectives.h"

namespace lockstep::analysis {

const char* MatchBasisName(MatchBasis basis) { return basis == MatchBasis::kSequence ? "sequence" : "order"; }

Collectives MatchCollectives(const RunContext&) { return {}; }

void TimeCollectives(const model::Run&, Collectives*) {}

}  // namespace lockstep::analysis
