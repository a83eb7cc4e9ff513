#pragma once

#include <iosfwd>
#include <string>

#include "analysis/hang/diagnosis.h"
#include "model/evidence/job_evidence.h"
#include "model/ledger.h"

namespace lockstep::report {

struct HangTextOptions {
  bool colour = false;
  int columns = 100;
  bool all = false;  ///< Every group, rank and stack, not just those that matter.
  bool unicode = true;
};

/// The verdict, then its evidence, then what to do.
void WriteHangText(const hang::Diagnosis& diagnosis, const HangTextOptions& options, std::ostream& out);
/// One object, "lockstep.hang/1" (docs/json.md, docs/schema/hang-1.schema.json).
void WriteHangJson(const hang::Diagnosis& diagnosis, std::ostream& out);
/// Its member "data" alone, compact: what the page embeds.
std::string HangDataJson(const hang::Diagnosis& diagnosis);
/// Its member "ledger": what could not be read, and ranks without any evidence.
model::Ledger HangLedger(const hang::Diagnosis& diagnosis);
/// Its member "partial": a file could not be read whole, or nothing at all is known of a rank below the world size.
bool IsPartial(const hang::Diagnosis& diagnosis);

}  // namespace lockstep::report
