#pragma once

#include <ostream>
#include <string>

#include "base/result.h"

namespace lockstep::cli {

/// When a job has ended: what the stages of its steps say, as `lockstep stages` prints it, to `out`; and, where
/// `summary_file` is not empty, as --json there. Errors: kNotFound (no process recorded steps), kIo (of the
/// summary).
Status TellStages(const std::string& folder, const std::string& summary_file, std::ostream& out);

}  // namespace lockstep::cli
