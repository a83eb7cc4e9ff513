#pragma once

#include <cstdint>
#include <optional>

#include "hang/findings.h"

namespace lockstep::hang {

/// For how long an operation had been open when its rank's record was made: by one clock, where the record's own time
/// is known, else up to the end of the collection. nullopt: neither is known.
std::optional<int64_t> OpenFor(const Findings& findings, const Track& track, uint32_t entry);

/// Whether records show that the job went on while they were made: some rank completed what cannot complete before
/// another came, and that other's record shows it before. Ranks dump one after the other, files do not say when, and a
/// stuck job's records never show this. False where a rank failed: failed operations are marked complete, too.
bool WentOnMeanwhile(const JobView& view, const std::vector<RankCondition>& conditions);

}  // namespace lockstep::hang
