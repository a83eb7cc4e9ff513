#pragma once

#include <string>
#include <vector>

#include "cli/run_input.h"
#include "cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep serve PATH...`: the report page of a run on a loopback port, its data on demand.
class ServeCommand : public Subcommand {
 public:
  const char* name() const override { return "serve"; }
  const char* purpose() const override { return "Show the report page of a run in the browser, detail on demand"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  std::vector<std::string> paths_;
  uint16_t port_ = 0;
  bool browser_ = false;
  bool quiet_ = false;
  RunInput input_;
};

}  // namespace lockstep::cli
