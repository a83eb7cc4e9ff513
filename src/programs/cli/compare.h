#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison/compare.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {

/// `lockstep compare A B`: what became faster or slower from one run to another, and whether it is noise.
class CompareCommand : public Subcommand {
 public:
  const char* name() const override { return "compare"; }
  const char* purpose() const override {
    return "Say what became faster or slower between two runs, and whether it is noise";
  }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Status ReadFlags();
  Result<comparison::RunProfile> ReadRun(const std::string& path, Console& console);
  int ExitStatusOf(const comparison::Comparison& comparison, bool partial) const;

  std::vector<std::string> paths_;
  bool json_ = false;
  std::string csv_folder_;
  std::string page_file_;
  uint64_t top_ = 5;
  bool quiet_ = false;
  std::string steps_;
  double confidence_percent_ = 99;
  double minimum_percent_ = 1;
  std::vector<std::string> fail_on_;
  std::optional<double> fail_slower_;  ///< Ratio from which on slower fails.
  bool fail_undecided_ = false;
  comparison::ProfileOptions profile_;
  comparison::CompareOptions options_;
  TextFlags text_;
  RunInput input_;
};

}  // namespace lockstep::cli
