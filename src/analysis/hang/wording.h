#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/hang/findings.h"

namespace lockstep::hang {

/// "rank 3", "ranks 0-2 and 5", "ranks 0-9, 12, 14 and 40 more".
std::string Ranks(const std::vector<int32_t>& ranks);
/// "Ranks 0-2": the first letter of a sentence.
std::string Capital(std::string text);
std::string Seconds(int64_t nanoseconds);  ///< "41 s", "3.2 s", "12 ms".
/// "train.py:74 (clip)"; "" where nothing is known.
std::string Place(std::string_view function, std::string_view file, int32_t line);
std::string Place(const JobView& view, uint32_t site);
/// "default_pg" or "DATA_PARALLEL_GROUP (3)".
std::string GroupText(const GroupView& group);
std::string Plural(size_t count, std::string_view noun);

CodeSite SiteOfCall(const JobView& view, const Track& track, const Call& call, std::string role, std::string what);
CodeSite SiteOfEntry(const JobView& view, const Track& track, uint32_t entry, std::string role, std::string what);
/// Where a traceback of its log ends in the user's code; its function is empty where it does not.
CodeSite SiteOfError(const evidence::LogEvent& event, int32_t rank, std::string role, std::string what);
/// Of a rank's main thread; its function is empty where no stack is known.
CodeSite SiteOfMain(const RankCondition& condition, int32_t rank, std::string role, std::string what);
/// Merges ranks that are at the same place for the same reason.
void AddSite(std::vector<CodeSite>& sites, CodeSite site);
/// "is asleep at train.py:52 (next_batch)", "is stopped (state T)"; "" where nothing is known.
std::string MainThreadText(const RankCondition& condition);

/// Whether it waits for one of `ranks`; with `perhaps` also if it is not known whether that one entered it.
bool WaitsForAny(const Wait& wait, const std::vector<int32_t>& ranks, bool perhaps);
/// The sites where ranks wait for the verdict's culprits.
void AddVictims(const Findings& findings, Verdict& verdict);

void FillGroup(const JobView& view, uint32_t group, Verdict& verdict);
/// `ranks` without `without`; both ascending.
std::vector<int32_t> Without(const std::vector<int32_t>& ranks, const std::vector<int32_t>& without);
bool Has(const std::vector<int32_t>& ranks, int32_t rank);

}  // namespace lockstep::hang
