#pragma once

#include <string>

#include "programs/cli/node_flags.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {

/// `lockstep top`: jobs, ranks and devices now, as their nodes' daemons measure them.
class TopCommand : public Subcommand {
 public:
  const char* name() const override { return "top"; }
  const char* purpose() const override { return "Show what jobs and ranks do now, worst ranks first, refreshed"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Status ReadFlags();
  Result<int> PrintOnce(const jobs::Nodes& nodes, Console& console) const;
  Result<int> PrintLines(const jobs::Nodes& nodes, Console& console) const;
  Result<int> ShowView(const jobs::Nodes& nodes, Console& console) const;

  NodeFlags nodes_;
  TextFlags text_;
  std::string interval_;
  std::string window_ = "10s";
  std::string timeout_ = "5s";
  int64_t interval_ns_ = 0;
  int64_t window_ns_ = 0;
  int64_t timeout_ns_ = 0;
  bool once_ = false;
  bool json_ = false;
};

}  // namespace lockstep::cli
