#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/control/api/inspection.h"
#include "node/jobs/live_job.h"
#include "programs/cli/node_flags.h"

namespace CLI {
class App;
}

namespace lockstep::cli {

/// The flags that say which live processes: those of NodeFlags, --pid, --rank and --timeout.
class LiveFlags {
 public:
  void Declare(CLI::App& app);
  /// Whether one of them was given.
  bool is_given() const;
  Result<jobs::LiveJob> Find() const;
  /// The same nodes for what needs their daemons. Errors: those of NodeFlags::Find.
  Result<jobs::Nodes> FindDaemons() const { return nodes_.Find(); }
  const control::InspectionSpec& selection() const { return selection_; }
  int64_t timeout_ns() const { return timeout_ns_; }
  Status Read();

 private:
  NodeFlags nodes_;
  std::vector<std::string> pids_text_;  ///< Each may be several with commas.
  std::string ranks_text_;
  std::string timeout_ = "30s";
  int64_t timeout_ns_ = 0;
  control::InspectionSpec selection_;
};

}  // namespace lockstep::cli
