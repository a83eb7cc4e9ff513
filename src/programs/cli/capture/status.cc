#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "programs/cli/capture/status_output.h"
#include "programs/cli/cli.h"
#include "programs/cli/node_flags.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {
namespace {

/// `lockstep status`: which jobs and ranks are registered on which nodes, what is being captured, and what is wrong.
class StatusCommand : public Subcommand {
 public:
  const char* name() const override { return "status"; }
  const char* purpose() const override { return "Show jobs, ranks and captures on the nodes, and what is wrong there"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  NodeFlags nodes_;
  TextFlags text_;
  std::string timeout_ = "10s";
  bool all_ = false;
  bool json_ = false;
};

constexpr const char* kStatusFooter =
    "It lists processes that were started with KINETO_USE_DAEMON=1 on a node with lockstepd.\n"
    "Only root and the capture group see other users' processes.\n"
    "Exit status: 0 all nodes answered; 1 none did; 2 misused; 4 some did not, the others\n"
    "are printed.\n"
    "\n"
    "Examples:\n"
    "  lockstep status\n"
    "  lockstep status --job 123 --via srun\n"
    "  lockstep status --host n[001-016] --json";

void StatusCommand::Declare(CLI::App& app) {
  nodes_.Declare(app);
  app.option_defaults()->group("Output");
  app.add_flag("--all", all_, "A line for every process and capture, launchers and helpers too");
  app.add_flag("--json", json_, "One JSON object (lockstep.status/1, docs/json.md)");
  app.add_option("--timeout", timeout_, "Time limit for all nodes to answer (10s)")->type_name("TIME");
  text_.Declare(app);
  app.footer(kStatusFooter);
}

Result<int> StatusCommand::Run(Console& console) {
  ASSIGN_OR_RETURN(const int64_t timeout_ns, ParseTime(timeout_, "--timeout"));
  if (timeout_ns <= 0) return Misuse("--timeout: more than nothing");
  ASSIGN_OR_RETURN(const jobs::Nodes nodes, nodes_.Find());
  const jobs::StatusView view = jobs::AskNodes(nodes, timeout_ns);
  // One node, and no answer: nothing to show but why.
  if (!json_ && view.nodes.size() == 1 && !view.nodes.front().status) return *view.nodes.front().error;
  if (json_) {
    WriteStatusJson(view, console.out);
  } else {
    WriteStatusText(view, text_.Options(console, 0), all_, console.out);
  }
  if (view.answered_count() == 0) return kFailed;
  const bool is_partial = std::any_of(view.nodes.begin(), view.nodes.end(),
                                      [](const jobs::NodeView& node) { return node.error.has_value(); });
  return is_partial ? kPartial : kDone;
}

}  // namespace

std::unique_ptr<Subcommand> MakeStatus() { return std::make_unique<StatusCommand>(); }

}  // namespace lockstep::cli
