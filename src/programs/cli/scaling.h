#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison/scaling.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {

/// `lockstep scaling RUN1 RUN2 RUN4...`: speed-up, efficiency and what bounds the next doubling.
class ScalingCommand : public Subcommand {
 public:
  const char* name() const override { return "scaling"; }
  const char* purpose() const override { return "Say how a job scales over runs of several sizes, and what bounds it"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Result<comparison::ScalingInput> ReadRun(const std::string& text, Console& console);

  std::vector<std::string> runs_;
  std::vector<std::string> no_sync_;
  bool weak_ = false;
  bool strong_ = false;
  std::optional<double> items_;
  bool json_ = false;
  std::string csv_folder_;
  std::string page_file_;
  bool quiet_ = false;
  double confidence_percent_ = 95;
  comparison::ProfileOptions profile_;
  TextFlags text_;
  RunInput input_;
};

}  // namespace lockstep::cli
