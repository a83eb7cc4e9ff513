#pragma once

#include <string>

#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// "lockstep 0.1.0".
std::string VersionText();

class VersionCommand : public Subcommand {
 public:
  const char* name() const override { return "version"; }
  const char* purpose() const override { return "Print the version, the compiler and the JSON schemas"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;
};

}  // namespace lockstep::cli
