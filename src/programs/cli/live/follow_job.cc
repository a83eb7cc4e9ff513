#include "programs/cli/live/follow_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/now.h"
#include "node/live/job_tracker.h"
#include "node/live/node_poller.h"
#include "present/report/utf8.h"
#include "programs/cli/cli.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run_input.h"
#include "programs/cli/terminal/ending_signals.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kLeastWindowNs = 10'000'000'000;
constexpr int64_t kLeastTimeoutNs = 5'000'000'000;
constexpr std::array kFollowFlags = {"--interval", "--for", "--linger"};

class Follower {
 public:
  Follower(jobs::Nodes nodes, const FollowJob::Sink& sink, int64_t interval_ns, bool is_quiet, Console& console)
      : job_id_(nodes.job_id),
        sink_(sink),
        timeout_ns_(std::max(kLeastTimeoutNs, interval_ns)),
        is_quiet_(is_quiet),
        console_(console),
        poller_(std::move(nodes.endpoints), nodes.job_id, nodes.parallel),
        tracker_(std::max(kLeastWindowNs, 2 * interval_ns), nodes.is_whole_job) {}

  /// One look. False: the job was there, and is not any more.
  Result<bool> Look() {
    std::vector<live::NodeLook> looks = poller_.Look(timeout_ns_);
    view_ = tracker_.Take(std::move(looks), SteadyNow(), UnixNow());
    TellNodes();
    if (view_.look_count == 1 && view_.answered_count() == 0 && view_.nodes.size() == 1) return *view_.nodes[0].error;
    const auto has_ranks = [](const live::JobView& job) { return !job.ranks.empty(); };
    if (job_id_.empty()) {
      std::vector<std::string> names;
      for (const live::JobView& job : view_.jobs) {
        if (has_ranks(job)) names.push_back(job.job_id);
      }
      if (names.size() > 1) {
        for (std::string& name : names) name = report::Printable(name);
        if (names.size() > 8) names.resize(8);
        return Error{ErrorCode::kFailedPrecondition,
                     fmt::format("several jobs run there ({}); name one with --job", fmt::join(names, ", "))};
      }
      if (!names.empty()) job_id_ = names[0];
    }
    const auto job = std::find_if(view_.jobs.begin(), view_.jobs.end(), [&](const live::JobView& one) {
      return !job_id_.empty() && one.job_id == job_id_ && has_ranks(one);
    });
    if (job == view_.jobs.end()) {
      if (!is_begun_ && view_.look_count == 1) Tell("no rank runs yet: waiting for one");
      return !is_begun_;  // Ranks of a node that does not answer are still there, while they may live.
    }
    if (!std::exchange(is_begun_, true)) {
      Tell(fmt::format("follows job {}: {} rank{} {}", report::Printable(job->job_id), job->ranks.size(),
                       job->ranks.size() == 1 ? "" : "s", sink_.where));
    }
    RETURN_IF_ERROR(sink_.take(*job, view_.taken_unix_ns));
    return true;
  }

  int status() const {
    if (view_.answered_count() == 0) return kFailed;
    return view_.answered_count() < view_.nodes.size() ? kPartial : kDone;
  }

 private:
  void Tell(const std::string& text) const {
    if (!is_quiet_) console_.err << "lockstep: " << text << std::endl;
  }

  /// Of each node once that it does not answer, and once that it does again.
  void TellNodes() {
    for (const live::NodeView& node : view_.nodes) {
      if (node.error && lost_.insert(node.place).second) {
        Tell(fmt::format("{} does not answer: {}", report::Printable(node.host), node.error->ToString()));
      } else if (!node.error && lost_.erase(node.place) > 0) {
        Tell(fmt::format("{} answers again", report::Printable(node.host)));
      }
    }
  }

  std::string job_id_;
  const FollowJob::Sink& sink_;
  const int64_t timeout_ns_;
  const bool is_quiet_;
  Console& console_;
  live::NodePoller poller_;
  live::JobTracker tracker_;
  live::View view_;
  std::set<std::string> lost_;
  bool is_begun_ = false;
};

}  // namespace

void FollowJob::Declare(CLI::App& app) {
  app_ = &app;
  app.option_defaults()->group("A running job");
  app.add_flag("--follow", is_asked_for_,
               "Read a running job, as lockstep top does, not files, until it ends or Ctrl-C");
  app.add_option("--interval", interval_, "Time between two looks, at least 100ms (5s)")->type_name("TIME");
  app.add_option("--for", for_, "End after this time (when the job ends)")->type_name("TIME");
  app.add_option(
         "--linger", linger_,
         "Take the job as ended when no rank of it has run for this long, so that torchrun can restart them (10s)")
      ->type_name("TIME");
  nodes_.Declare(app);
}

Status FollowJob::Read() {
  if (!is_asked_for_) {
    for (const char* name : kFollowFlags) {
      if (app_->get_option(name)->count() > 0) return Misuse(fmt::format("{} is for --follow", name));
    }
    if (nodes_.is_given()) return Misuse("flags that name nodes are for --follow");
    return {};
  }
  ASSIGN_OR_RETURN(interval_ns_, ParseTime(interval_, "--interval"));
  if (interval_ns_ < 100'000'000) return Misuse("--interval: 100ms at least");
  ASSIGN_OR_RETURN(linger_ns_, ParseTime(linger_, "--linger"));
  if (!for_.empty()) {
    ASSIGN_OR_RETURN(for_ns_, ParseTime(for_, "--for"));
    if (for_ns_ <= 0) return Misuse("--for: more than nothing");
  }
  return {};
}

Result<int> FollowJob::Run(const Sink& sink, bool is_quiet, Console& console) const {
  ASSIGN_OR_RETURN(jobs::Nodes nodes, nodes_.Find());
  ASSIGN_OR_RETURN(const EndingSignals signals, EndingSignals::Catch());
  Follower follower(std::move(nodes), sink, interval_ns_, is_quiet, console);
  const int64_t begin_ns = SteadyNow();
  int64_t there_ns = begin_ns;  // When the job was there last.
  while (true) {
    const int64_t look_ns = SteadyNow();
    ASSIGN_OR_RETURN(const bool is_there, follower.Look());
    const int64_t now_ns = SteadyNow();
    if (is_there) there_ns = now_ns;
    int64_t left_ns = interval_ns_ - (now_ns - look_ns);
    if (!is_there) {
      const int64_t end_ns = there_ns + linger_ns_;
      if (now_ns >= end_ns) break;
      left_ns = std::min(left_ns, end_ns - now_ns);
    }
    if (for_ns_ > 0) {
      const int64_t end_ns = begin_ns + for_ns_;
      if (now_ns >= end_ns) break;
      left_ns = std::min(left_ns, end_ns - now_ns);
    }
    if (signals.Wait(left_ns)) break;
  }
  return follower.status();
}

}  // namespace lockstep::cli
