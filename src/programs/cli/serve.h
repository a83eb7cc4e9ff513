#pragma once

#include <string>
#include <vector>

#include "programs/cli/live/serve_live.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep serve PATH...`: the report page of a run on a loopback port, its data on demand; without PATH, what jobs
/// on nodes do now (serve_live.h).
class ServeCommand : public Subcommand {
 public:
  const char* name() const override { return "serve"; }
  const char* purpose() const override { return "Show a run's report, or what jobs do now, in the browser"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  std::vector<std::string> paths_;
  uint16_t port_ = 0;
  std::string fabric_file_;
  bool browser_ = false;
  bool quiet_ = false;
  RunInput input_;
  ServeLive live_;
};

}  // namespace lockstep::cli
