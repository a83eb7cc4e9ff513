#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/input_files.h"
#include "model/kernel_profile.h"

namespace lockstep::ingest {

/// Reads any mix of files and folders: tables of `ncu --csv` and of `nsys stats`, plain or compressed, told by their
/// bytes; a report of Nsight Compute's own (.ncu-rep) through the machine's `ncu`. A launch on both pages of a report
/// (name.raw.csv and name.details.csv) becomes one. Of a folder every file that may be one is looked at; what is none
/// of them is passed over there, and a ledger row where it was named.
/// Ledger: "kernel_profile_unreadable", "kernel_profile_cut" (of a table the first GiB is read), "no_ncu", and those of
/// ReadNcuCsv and ReadStatsSum. Errors: kNotFound (a path is not there, or nothing in them is such a table).
Result<model::KernelProfiles> ReadKernelProfiles(const std::vector<std::string>& paths);

/// The tables among `files`, which lie beside other files. Other files are skipped silently; only the part in which a
/// table would begin is read of them. Out: null where there is none; in `taken` the paths of those that were.
std::shared_ptr<const model::KernelProfiles> ReadKernelTables(const std::vector<InputFile>& files,
                                                              std::set<std::string>* taken);

}  // namespace lockstep::ingest
