#pragma once

#include <string>
#include <vector>

#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {

/// `lockstep nccl-log PATH...`: what NCCL's own logs, topology files and RAS answers tell of a job.
class NcclLogCommand : public Subcommand {
 public:
  const char* name() const override { return "nccl-log"; }
  const char* purpose() const override { return "Say what NCCL's logs, topology files and RAS report about a job"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  std::vector<std::string> paths_;
  bool json_ = false;
  std::string page_file_;
  bool all_ = false;
  bool topology_ = false;
  std::vector<std::string> fail_on_;
  TextFlags text_;
};

}  // namespace lockstep::cli
