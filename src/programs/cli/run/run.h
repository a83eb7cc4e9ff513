#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node/local/private_daemon.h"
#include "programs/cli/run/foreground.h"
#include "programs/cli/run/profile_flags.h"
#include "programs/cli/run/python_site.h"
#include "programs/cli/run/run_logs.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep run [flags] -- CMD...`: CMD with what lets its PyTorch processes be captured, and on request a daemon for
/// as long as it runs. What goes wrong on the way is told, and CMD runs all the same. With --profile nsys or ncu: the
/// chosen ranks under that profiler, the others as they are.
class RunCommand : public Subcommand {
 public:
  const char* name() const override { return "run"; }
  const char* purpose() const override {
    return "Start a training job, to be captured while it runs or with ranks under nsys or ncu";
  }
  void Declare(CLI::App& app) override;
  bool TakesCommandLine() const override { return true; }
  void SetCommandLine(std::vector<std::string> words) override { after_dashes_ = std::move(words); }
  Result<int> Run(Console& console) override;

 private:
  Status ReadFlags();
  Status RefuseKinetoFlags() const;
  Status PrepareDebugging();
  /// Of a rank that is not prepared for Kineto; nullopt: it is.
  Result<std::optional<int>> RunOtherwise(Console& console);
  /// What can be asked for a capture of this job, on one line; told by one rank only.
  void TellHow(const local::NodeDaemon& daemon, Console& console) const;
  /// Nullopt: there is none, and the job runs without.
  Result<std::optional<local::NodeDaemon>> FindDaemon(const Result<std::string>& folder, Console& console);
  Status CheckSocketFolder(Console& console);
  /// What Python processes are to do is added to `command`; what `recording` holds has to live as long as it runs.
  void PreparePython(const Result<std::string>& folder, Console& console, StepRecording* recording,
                     ForegroundCommand* command) const;
  void Tell(Console& console, const std::string& text) const;

  const CLI::App* app_ = nullptr;
  ProfileFlags profile_flags_;
  RunLogs logs_;
  std::optional<std::vector<std::string>> after_dashes_;
  std::vector<std::string> arguments_;
  std::string socket_folder_;
  std::string interval_ = "1s";
  int64_t poll_seconds_ = 1;
  bool with_daemon_ = false;
  bool requires_daemon_ = false;
  std::string debug_folder_;
  std::vector<std::pair<std::string, std::string>> debug_variables_;
  bool hang_dumps_ = false;
  bool kineto_alone_ = false;
  bool steps_ = false;
  bool quiet_ = false;
};

}  // namespace lockstep::cli
