#pragma once

#include <optional>
#include <string>
#include <vector>

#include "present/export/timeline/timeline.h"
#include "programs/cli/merge_logs.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep merge PATH... -o FILE`: all ranks' traces as one timeline on one clock.
class MergeCommand : public Subcommand {
 public:
  const char* name() const override { return "merge"; }
  const char* purpose() const override {
    return "Write all ranks as one timeline on one clock, for Perfetto or Chrome";
  }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Status ReadSelection();
  Status ReadLogs(const model::Run& run, Console& console);
  uint64_t LeftOutLines(const timeline::Summary& summary) const;
  void WriteJson(const model::Run& run, const timeline::Summary& summary, bool partial, Console& console) const;
  void WriteText(const model::Run& run, const timeline::Summary& summary, Console& console) const;

  std::vector<std::string> paths_;
  std::string output_;
  std::string ranks_;
  std::string steps_;
  std::string from_;
  std::string to_;
  std::vector<std::string> lanes_;
  std::vector<std::string> log_paths_;
  std::string log_level_;
  logs::LogFilter log_filter_;
  bool no_python_ = false;
  bool no_flows_ = false;
  bool critical_path_ = false;
  bool json_ = false;
  bool quiet_ = false;
  timeline::Options options_;
  std::optional<MergeLogs> logs_;
  RunInput input_;
};

}  // namespace lockstep::cli
