#pragma once

#include <cstdint>
#include <optional>

#include "analysis/hang/findings.h"

namespace lockstep::hang {

/// How long an operation had been open when its rank's record was made: by one clock if the record's own time is known,
/// else up to the end of the collection. nullopt: neither is known.
std::optional<int64_t> OpenFor(const Findings& findings, const Track& track, uint32_t entry);

/// Whether the records show that the job made progress while they were made: a rank completed an operation that cannot
/// complete before another rank enters it, and the other's record shows that rank before it. Records of a stuck job
/// never show this. False if a rank failed: failed operations are marked complete, too.
bool WentOnMeanwhile(const JobView& view, const std::vector<RankCondition>& conditions);

}  // namespace lockstep::hang
