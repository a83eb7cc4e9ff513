#pragma once

#include <vector>

#include "broken_job.h"
#include "hang/diagnosis.h"

namespace lockstep::hang_test {

struct Case {
  JobShape shape;
  Fault fault = Fault::kNone;
  uint64_t seed = 0;
  size_t lost = 0;  ///< Records that are taken away.
};

/// Every fault in every shape that can have it, over fixed seeds. Shapes have 4 to 1,024 ranks.
std::vector<Case> AllCases();
BrokenJob RunCase(const Case& of);

/// Whether a verdict names what was done to the job. Where the evidence cannot tell two kinds apart (Gloo blocks at the
/// first call that differs, and a record without frames does not say from where it was made) either is right.
bool IsRight(const Case& of, const BrokenJob& job, const hang::Verdict& verdict);
/// States culprits, and one of them is innocent.
bool AccusesWrongly(const BrokenJob& job, const hang::Verdict& verdict);

}  // namespace lockstep::hang_test
