#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ingest/logs/log_filter.h"
#include "ingest/logs/log_merger.h"
#include "present/report/logs/log_output.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/terminal/console.h"

namespace lockstep::cli {

/// `lockstep logs PATH...`: the logs of all ranks as one.
class LogsCommand : public Subcommand {
 public:
  const char* name() const override { return "logs"; }
  const char* purpose() const override { return "Show the logs of all ranks as one: merged by time, filtered, folded"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Status ReadFlags();
  /// What each rank's wall clock reads too much, from traces of the same job.
  Status ReadClocks(Console& console);
  Status FindNew();
  void Show(report::LogOutput& output);
  void Follow(report::LogOutput& output);
  report::LogSummary Summary() const;
  void TellProblems(const report::LogSummary& summary, Console& console) const;

  std::vector<std::string> paths_;
  bool follows_ = false;
  bool first_errors_ = false;
  bool is_unfolded_ = false;
  bool json_ = false;
  bool quiet_ = false;
  std::string ranks_;
  std::string level_;
  std::vector<std::string> texts_;
  std::vector<std::string> trace_paths_;
  std::string colour_ = "auto";
  RunInput input_;

  logs::LogFilter filter_;
  logs::LogReader::ClockOffset offset_;
  std::vector<std::unique_ptr<logs::LogReader>> readers_;
  logs::LogMerger merger_;
};

}  // namespace lockstep::cli
