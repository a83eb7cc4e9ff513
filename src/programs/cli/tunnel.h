#pragma once

#include <string>

#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep tunnel`: what `--via` runs on a node, so that the daemon's Unix socket is reached without a port.
class TunnelCommand : public Subcommand {
 public:
  const char* name() const override { return "tunnel"; }
  const char* purpose() const override { return "Carry bytes between standard input/output and this node's daemon"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  std::string socket_;
};

}  // namespace lockstep::cli
