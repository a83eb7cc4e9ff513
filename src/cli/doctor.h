#pragma once

#include <string>
#include <vector>

#include "cli/doctor_check.h"
#include "cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep doctor`: what keeps processes of this node from being captured, and what to do about it.
class DoctorCommand : public Subcommand {
 public:
  const char* name() const override { return "doctor"; }
  const char* purpose() const override { return "Say what on this node keeps jobs from being captured"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  NodeFacts Collect() const;

  std::string output_folder_ = ".";
  bool json_ = false;
};

}  // namespace lockstep::cli
