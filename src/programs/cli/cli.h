#pragma once

namespace lockstep::ingest {
class TeamEvidence;
class TeamIngest;
}  // namespace lockstep::ingest

namespace lockstep::cli {

/// Exit status of every command.
enum ExitStatus : int { kDone = 0, kFailed = 1, kMisused = 2, kFinding = 3, kPartial = 4 };

/// The `lockstep` program: parses the command line, runs one subcommand, returns its exit status. Never throws.
int Main(int argc, char** argv);

/// The root's part of the `lockstep-mpi` program: analyze, compare, hang and merge over what the teams read. Standard
/// output counts as no terminal: launchers put a pseudo-terminal in between.
int TeamMain(int argc, char** argv, ingest::TeamIngest* team, ingest::TeamEvidence* team_evidence);

}  // namespace lockstep::cli
