#pragma once

#include <vector>

#include "analysis/hang/diagnosis.h"
#include "broken_job.h"

namespace lockstep::hang_test {

struct Case {
  JobShape shape;
  Fault fault = Fault::kNone;
  uint64_t seed = 0;
  size_t lost = 0;  ///< Records that are taken away.
};

/// Every fault in every shape that can have it, each with a seed of its own from `first_seed`. Shapes have 4 to 1,024
/// ranks.
std::vector<Case> AllCases(uint64_t first_seed);
/// Jobs whose groups all hold every rank, of 2 to 64 ranks, over NCCL and Gloo, with recorders that tell what began and
/// such that do not, whole rings and wrapped ones, with and without frames, all records and one that is lost.
std::vector<Case> FlatCases(uint64_t first_seed);
BrokenJob RunCase(const Case& of);

/// Whether a verdict names what was done to the job. Where the evidence cannot tell two kinds apart (Gloo blocks at the
/// first call that differs, and a record without frames does not say from where it was made) either is right.
bool IsRight(const Case& of, const BrokenJob& job, const hang::Verdict& verdict);
/// Whether what is left of the job tells who broke it: of two ranks that differ either may be wrong, and a rank whose
/// record is lost may have done anything.
bool CanBeTold(const Case& of, const BrokenJob& job);
/// States culprits, and one of them is innocent.
bool AccusesWrongly(const BrokenJob& job, const hang::Verdict& verdict);

}  // namespace lockstep::hang_test
