#pragma once

#include <string>

#include "programs/cli/node_flags.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep doctor`: what keeps processes of this node from being captured, or a job's nodes and ranks from working
/// together, and what to do about it.
class DoctorCommand : public Subcommand {
 public:
  const char* name() const override { return "doctor"; }
  const char* purpose() const override { return "Check this node, or a job's nodes and ranks, and say what to do"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  NodeFlags nodes_;
  std::string timeout_ = "60s";
  std::string mpi_;
  bool with_network_ = true;
  std::string output_folder_ = ".";
  bool json_ = false;
};

}  // namespace lockstep::cli
