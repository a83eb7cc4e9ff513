#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lockstep::cli {

/// A command to run in our place: the same terminal, process group, standard streams and folder.
struct ForegroundCommand {
  std::vector<std::string> arguments;                            ///< The program, looked for in PATH, and its own.
  std::vector<std::pair<std::string, std::string>> environment;  ///< Set besides what we were given.
  /// Name of a process that the command may leave behind to run the job on when it ends itself, as nsys does after
  /// --duration: then that one is waited for, signals go to what runs below it, and its status counts. Empty: none.
  std::string successor = {};
  int output = -1;  ///< What becomes its standard output and error; -1: ours. Borrowed.
  int error = -1;
};

constexpr int kCommandNotExecutable = 126;  ///< What shells answer for a file that cannot be run,
constexpr int kCommandNotFound = 127;       ///< and for one that is not there.

/// Runs a command to its end and returns its exit status, or 128 + the signal that ended it. Until then signals that
/// would end or reach us are passed on to it (those that the terminal or SLURM sends to it as well are not sent twice),
/// and every child that ends is reaped, orphans that were handed to us included. It does not outlive us. Signals that
/// we were started with ignored stay so in the command. Errors: kNotFound and kPermissionDenied when it cannot be
/// started, kIo when the system fails. One thread only.
Result<int> RunInForeground(const ForegroundCommand& command);

/// Becomes the command: same process, so that launcher and batch system see it as if nothing had been in front. Returns
/// only when it cannot be run: kNotFound, kPermissionDenied or kIo.
Error ReplaceByCommand(const ForegroundCommand& command);

}  // namespace lockstep::cli
