#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "inside/launch/environment.h"
#include "inside/launch/rank_environment.h"
#include "inside/launch/tool_command.h"
#include "inside/launch/tool_version.h"
#include "programs/cli/run/profile_flags.h"
#include "programs/cli/run/run_logs.h"
#include "programs/cli/terminal/console.h"

namespace lockstep::cli {

/// One rank of `lockstep run --profile`: whether it is profiled, how, and what became of it.
class ProfileRun {
 public:
  /// `command`: CMD and its arguments. `extra`: further variables for CMD. Borrows `logs` and `console`.
  ProfileRun(ProfileRequest request, std::vector<std::string> command,
             std::vector<std::pair<std::string, std::string>> extra, const RunLogs& logs, bool is_quiet,
             Console& console);

  /// Whether this rank is asked for. Errors: kFailedPrecondition when the launcher does not tell.
  Result<bool> IsChosen();
  /// Becomes CMD: the same process, so that status and signals are its own. Returns only when it cannot, 126 or 127, or
  /// when its output is logged, its status.
  int BecomeCommand();
  /// Runs CMD under the profiler, or prints how it would. Returns CMD's exit status.
  Result<int> RunProfiled();
  /// The plan of a rank that no profiler sees. `why`: one line.
  int PrintUnprofiledPlan(const std::string& why);

 private:
  struct Plan {
    std::string tool;
    launch::ToolVersion version;
    std::string folder;
    std::string stem;  ///< Of the report's name.
    launch::ToolCommand how;
  };

  Result<Plan> MakePlan();
  /// The request for ncu with the kernels of --kernels-from.
  Result<launch::NcuRequest> ReadKernels() const;
  Status CheckPlacement() const;
  Status CheckFree(const Plan& plan) const;
  std::vector<std::string> Arguments(const Plan& plan) const;
  void PrintPlan(const Plan& plan) const;
  std::string Who() const;
  std::string DefaultFolder() const;
  void Tell(const std::string& text) const;

  ProfileRequest request_;
  std::vector<std::string> command_;
  std::vector<std::pair<std::string, std::string>> extra_;
  const RunLogs& logs_;
  bool is_quiet_;
  Console& console_;
  launch::Environment environment_;
  launch::RankIdentity identity_;
  std::string host_;
};

}  // namespace lockstep::cli
