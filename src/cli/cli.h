#pragma once

namespace lockstep::cli {

/// Exit status of every command.
enum ExitStatus : int { kDone = 0, kFailed = 1, kMisused = 2, kFinding = 3, kPartial = 4 };

/// The `lockstep` program: parses the command line, runs one subcommand, returns its exit status. Never throws.
int Main(int argc, char** argv);

}  // namespace lockstep::cli
