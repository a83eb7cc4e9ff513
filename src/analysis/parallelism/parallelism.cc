#include "analysis/parallelism/parallelism.h"

namespace lockstep::analysis {

const Parallelism& ParallelismOf(const AnalysisResult& result) {
  static const Parallelism kNone;
  return result.parallelism ? *result.parallelism : kNone;
}

}  // namespace lockstep::analysis
