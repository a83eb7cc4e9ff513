#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "node/live/job_view.h"
#include "programs/cli/node_flags.h"
#include "programs/cli/terminal/console.h"

namespace CLI {
class App;
}

namespace lockstep::cli {

/// `--follow`: a command that reads files looks at a running job instead, again and again, until the job ends, --for is
/// over, or SIGINT, SIGTERM or SIGHUP comes.
class FollowJob {
 public:
  void Declare(CLI::App& app);
  bool is_asked_for() const { return is_asked_for_; }
  /// Reads the flags. Errors: kInvalidArgument, also for flags that are given without --follow.
  Status Read();

  struct Sink {
    /// What the nodes say of the job now. An error ends all.
    std::function<Status(const live::JobView& job, int64_t unix_ns)> take;
    /// A line about where it goes, behind "follows job 123: 8 ranks, ".
    std::string where;
  };
  /// Returns an ExitStatus. Errors: those of finding the nodes; of the node, where the only one does not answer the
  /// first look; kFailedPrecondition where several jobs are there and none is named; the sink's.
  Result<int> Run(const Sink& sink, bool is_quiet, Console& console) const;

 private:
  NodeFlags nodes_;
  CLI::App* app_ = nullptr;
  bool is_asked_for_ = false;
  std::string interval_ = "5s";
  std::string for_;
  std::string linger_ = "10s";
  int64_t interval_ns_ = 0;
  int64_t for_ns_ = 0;  ///< 0: until the job ends.
  int64_t linger_ns_ = 0;
};

}  // namespace lockstep::cli
