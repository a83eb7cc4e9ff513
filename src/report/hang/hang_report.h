#pragma once

#include <iosfwd>
#include <string>

#include "evidence/job_evidence.h"
#include "hang/diagnosis.h"

namespace lockstep::report {

struct HangTextOptions {
  bool colour = false;
  int columns = 100;
  bool all = false;  ///< Every group, rank and stack, not just those that matter.
};

/// The verdict, then its evidence, then what to do.
void WriteHangText(const hang::Diagnosis& diagnosis, const HangTextOptions& options, std::ostream& out);
/// One object, "lockstep.hang/1" (docs/json.md, docs/schema/hang.json).
void WriteHangJson(const hang::Diagnosis& diagnosis, std::ostream& out);

}  // namespace lockstep::report
