#pragma once

#include <string>

#include "base/result.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep bench show FILE -o PAGE`: a page of what `lockstep bench collectives --json` printed, and its best and its
/// slow links in two lines; beside an earlier one's curves where a file of such is named. Errors: those of
/// ReadBenchResults and WriteOutputFile.
Result<int> ShowBenchResults(const std::string& results_file, const std::string& earlier_file,
                             const std::string& page_file, Console& console);

}  // namespace lockstep::cli
