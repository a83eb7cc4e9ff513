#pragma once

#include <string>

#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// Prints a completion script made from the program's own commands and flags, so it never lags behind them.
class CompletionCommand : public Subcommand {
 public:
  /// `root` is asked when the command runs; it must outlive this.
  explicit CompletionCommand(const CLI::App& root) : root_(root) {}
  const char* name() const override { return "completion"; }
  const char* purpose() const override { return "Print a completion script for bash, zsh or fish"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  const CLI::App& root_;
  std::string shell_;
};

}  // namespace lockstep::cli
