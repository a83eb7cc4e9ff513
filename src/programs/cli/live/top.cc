#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "base/fd_buffer.h"
#include "base/nanoseconds.h"
#include "base/now.h"
#include "node/live/history.h"
#include "node/live/job_tracker.h"
#include "node/live/node_poller.h"
#include "present/live_stages/stage_watch.h"
#include "present/top/session.h"
#include "present/top/top_text.h"
#include "programs/cli/cli.h"
#include "programs/cli/live/ask_steps.h"
#include "programs/cli/live/top_capture.h"
#include "programs/cli/live/top_stacks.h"
#include "programs/cli/node_flags.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {
namespace {

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

constexpr const char* kTopFooter =
    "Ranks record steps, phases and requests with liblockstep (LOCKSTEP_TRACE,\n"
    "docs/instrument.md); lockstepd measures devices. \"-\" means not measured.\n"
    "Keys: h help, / filter, s sort, Enter a rank's page, d its stacks, c a trace of it, n nodes,\n"
    "q quit.\n"
    "--once looks twice, --interval apart (2s), so that it can show rates.\n"
    "Exit status: 0 all nodes answered; 1 none did; 2 misused; 4 some did not, the others\n"
    "are shown.\n"
    "\n"
    "Examples:\n"
    "  lockstep top\n"
    "  lockstep top --job 123 --via srun\n"
    "  lockstep top --host n[001-016] --once --json";

/// The first look, behind what the daemons remember: rates, paces and who was there are known at once.
live::View FirstLook(live::NodePoller& poller, live::JobTracker& tracker, int64_t interval_ns, int64_t timeout_ns) {
  constexpr int64_t kShortestNs = kSecondNs;  // Daemons look each second.
  std::vector<live::NodeLook> looks = poller.Look(timeout_ns);
  live::Recall(&poller, looks, std::max(interval_ns, kShortestNs) * static_cast<int64_t>(live::kHistory), timeout_ns,
               &tracker);
  return tracker.Take(std::move(looks), SteadyNow(), UnixNow());
}

live::View LookAgain(live::NodePoller& poller, live::JobTracker& tracker, int64_t timeout_ns) {
  std::vector<live::NodeLook> looks = poller.Look(timeout_ns);
  return tracker.Take(std::move(looks), SteadyNow(), UnixNow());
}

/// Whether nothing that is written arrives any more.
bool HasFailed(const std::ostream& out) {
  const auto* buffer = dynamic_cast<const FdBuffer*>(out.rdbuf());
  return !out.good() || (buffer != nullptr && buffer->error() != 0);
}

int StatusOf(const live::View& view) {
  if (view.answered_count() == 0) return kFailed;
  return view.answered_count() < view.nodes.size() ? kPartial : kDone;
}

void TopCommand::Declare(CLI::App& app) {
  nodes_.Declare(app);
  app.option_defaults()->group("Output");
  app.add_option("--interval", interval_, "Time between two looks, at least 100ms (1s; 2s with --once)")
      ->type_name("TIME");
  app.add_option("--window", window_, "Compute rates over this length of time (10s; with --once the interval)")
      ->type_name("TIME");
  app.add_flag("--once", once_, "Look twice, print one table and end");
  app.add_flag("--json", json_, "One JSON object (lockstep.top/1, docs/json.md); without --once, one line per look");
  app.add_option("--timeout", timeout_, "Time limit for all nodes to answer a look (5s)")->type_name("TIME");
  text_.Declare(app);
  app.footer(kTopFooter);
}

Status TopCommand::ReadFlags() {
  ASSIGN_OR_RETURN(interval_ns_, ParseTime(!interval_.empty() ? interval_ : once_ ? "2s" : "1s", "--interval"));
  if (interval_ns_ < 100'000'000) return Misuse("--interval: 100ms at least");
  ASSIGN_OR_RETURN(window_ns_, ParseTime(window_, "--window"));
  if (window_ns_ <= 0) return Misuse("--window: more than nothing");
  ASSIGN_OR_RETURN(timeout_ns_, ParseTime(timeout_, "--timeout"));
  if (timeout_ns_ <= 0) return Misuse("--timeout: more than nothing");
  return {};
}

Result<int> TopCommand::PrintOnce(const jobs::Nodes& nodes, Console& console) const {
  live::NodePoller poller(nodes.endpoints, nodes.job_id, nodes.parallel);
  live::JobTracker tracker(interval_ns_, nodes.is_whole_job);
  live::View view = FirstLook(poller, tracker, interval_ns_, timeout_ns_);
  if (view.answered_count() > 0) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(interval_ns_));
    view = LookAgain(poller, tracker, timeout_ns_);
    live_stages::AddVerdicts(AskStepsOf(nodes, timeout_ns_), &view);
  }
  // One node, and no answer: nothing to show but why.
  if (!json_ && view.nodes.size() == 1 && view.nodes.front().error) return *view.nodes.front().error;
  if (json_) {
    top::WriteTopJson(view, false, console.out);
  } else {
    top::WriteTopText(view, text_.Options(console, 0), console.out);
  }
  return StatusOf(view);
}

Result<int> TopCommand::PrintLines(const jobs::Nodes& nodes, Console& console) const {
  live::NodePoller poller(nodes.endpoints, nodes.job_id, nodes.parallel);
  live::JobTracker tracker(window_ns_, nodes.is_whole_job);
  live_stages::StageWatch stages({.ask = AskStepsOf(nodes, timeout_ns_)});
  // Until the reader has had enough, or a signal comes.
  for (bool is_first = true;; is_first = false) {
    const int64_t begin_ns = SteadyNow();
    live::View view =
        is_first ? FirstLook(poller, tracker, interval_ns_, timeout_ns_) : LookAgain(poller, tracker, timeout_ns_);
    stages.Pass(&view);
    top::WriteTopJson(view, true, console.out);
    if (HasFailed(console.out)) return kDone;  // Told by Main, where it is not just a reader that has gone.
    const int64_t left_ns = interval_ns_ - (SteadyNow() - begin_ns);
    if (left_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(left_ns));
  }
}

Result<int> TopCommand::ShowView(const jobs::Nodes& nodes, Console& console) const {
  live::NodePoller poller(nodes.endpoints, nodes.job_id, nodes.parallel);
  live::JobTracker tracker(window_ns_, nodes.is_whole_job);
  live::View first = FirstLook(poller, tracker, interval_ns_, timeout_ns_);
  const report::TextOptions text = text_.Options(console, 0);
  if (first.answered_count() == 0) {
    if (first.nodes.size() == 1) return *first.nodes.front().error;
    top::WriteTopText(first, text, console.err);
    return kFailed;
  }
  live_stages::StageWatch stages({.ask = AskStepsOf(nodes, timeout_ns_)});
  stages.Pass(&first);
  top::SessionOptions options;
  options.interval_ns = interval_ns_;
  options.colour = text.colour;
  options.unicode = text.unicode;
  options.look = [&] {
    live::View view = LookAgain(poller, tracker, timeout_ns_);
    stages.Pass(&view);
    return view;
  };
  options.stacks = [&](const top::RankTarget& target) { return LookAtStacks(nodes, nodes_.names_socket(), target); };
  options.capture = [&](const top::RankTarget& target, bool whole_job) {
    return CaptureTarget(nodes, target, whole_job);
  };
  ASSIGN_OR_RETURN(const top::SessionResult result, top::RunSession(options, std::move(first)));
  if (result.signal != 0) {
    ::signal(result.signal, SIG_DFL);
    ::raise(result.signal);
  }
  // What a thread still uses must not go away below it.
  if (result.must_leave || stages.is_asking()) ::_exit(StatusOf(result.last));
  return StatusOf(result.last);
}

Result<int> TopCommand::Run(Console& console) {
  RETURN_IF_ERROR(ReadFlags());
  if (!once_ && !json_ && !console.out_is_terminal) {
    return Misuse("standard output is not a terminal: --once prints a table, --json a line for each look");
  }
  ASSIGN_OR_RETURN(const jobs::Nodes nodes, nodes_.Find());
  if (once_) return PrintOnce(nodes, console);
  return json_ ? PrintLines(nodes, console) : ShowView(nodes, console);
}

}  // namespace

std::unique_ptr<Subcommand> MakeTop() { return std::make_unique<TopCommand>(); }

}  // namespace lockstep::cli
