#pragma once

#include <string>

#include "programs/cli/node_flags.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {

/// `lockstep status`: which jobs and ranks are registered on which nodes, what is being captured, and what is wrong.
class StatusCommand : public Subcommand {
 public:
  const char* name() const override { return "status"; }
  const char* purpose() const override { return "Show jobs, ranks and captures on the nodes, and what is wrong there"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  NodeFlags nodes_;
  TextFlags text_;
  std::string timeout_ = "10s";
  bool all_ = false;
  bool json_ = false;
};

}  // namespace lockstep::cli
