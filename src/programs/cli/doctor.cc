#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "programs/cli/cli.h"
#include "programs/cli/node_flags.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/doctor/collectives.h"
#include "programs/doctor/output.h"
#include "programs/doctor/run.h"

namespace lockstep::cli {
namespace {

/// `lockstep doctor`: what keeps processes of this node from being captured, or a job's nodes and ranks from working
/// together, and what to do about it.
class DoctorCommand : public Subcommand {
 public:
  const char* name() const override { return "doctor"; }
  const char* purpose() const override { return "Check this node, or a job's nodes and ranks, and say what to do"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  NodeFlags nodes_;
  std::string timeout_ = "60s";
  std::string mpi_;
  bool with_network_ = true;
  std::string output_folder_ = ".";
  bool json_ = false;
};

constexpr const char* kDoctorFooter =
    "With --job, --host or --hostfile it checks the job's nodes: whether all ranks are there,\n"
    "the network between every pair of nodes (daemons send each other up to 16 MiB each way),\n"
    "versions and settings of all ranks, clocks, whether stacks can be read, and whether ranks\n"
    "are stuck, late or use more than the others.\n"
    "Without them it checks this node: the daemon, the sockets at which PyTorch's processes\n"
    "find it, their base configuration, each running process with PyTorch, the clock, and the\n"
    "space for traces. It changes nothing. It sees other users' processes as far as you may.\n"
    "Exit status: 0 no problem (there may be warnings); 1 failed; 2 misused; 3 at least one\n"
    "problem.\n"
    "\n"
    "Examples:\n"
    "  lockstep doctor\n"
    "  lockstep doctor --job 4711 --via srun\n"
    "  lockstep doctor --host n[001-004] --json";

void DoctorCommand::Declare(CLI::App& app) {
  app.add_option("-o,--output", output_folder_, "The folder that captures will be written to (.)")->type_name("DIR");
  nodes_.Declare(app);
  app.option_defaults()->group("Options");
  app.add_option("--timeout", timeout_, "Time limit for all nodes and tests of a job (60s)")->type_name("TIME");
  app.add_option("--mpi", mpi_, "Also test collectives, by this command: 'mpirun --host a,b lockstep-mpi-check'")
      ->type_name("COMMAND");
  app.add_flag("!--no-network", with_network_, "Leave out the network between the nodes of a job");
  app.add_flag("--json", json_, "One JSON object (lockstep.doctor/1, docs/json.md)");
  app.footer(kDoctorFooter);
}

Result<int> DoctorCommand::Run(Console& console) {
  ASSIGN_OR_RETURN(const int64_t timeout_ns, ParseTime(timeout_, "--timeout"));
  if (timeout_ns <= 0) return Misuse("--timeout: more than nothing");
  std::vector<doctor::Check> checks;
  if (nodes_.names_nodes()) {
    ASSIGN_OR_RETURN(jobs::Nodes nodes, nodes_.Find());
    ASSIGN_OR_RETURN(checks, doctor::CheckJobNodes({.nodes = std::move(nodes),
                                                    .names_daemon = nodes_.names_socket(),
                                                    .timeout_ns = timeout_ns,
                                                    .with_network = with_network_,
                                                    .mpi_command = mpi_}));
  } else {
    checks = doctor::CheckThisNode(output_folder_);
    if (!mpi_.empty()) {
      ASSIGN_OR_RETURN(doctor::Check collectives, doctor::CheckCollectives(mpi_, timeout_ns));
      checks.push_back(std::move(collectives));
    }
  }
  if (json_) {
    doctor::WriteJson(checks, console.out);
  } else {
    doctor::WriteText(checks, console.out);
  }
  return doctor::CountOf(checks, doctor::CheckStatus::kProblem) > 0 ? kFinding : kDone;
}

}  // namespace

std::unique_ptr<Subcommand> MakeDoctor() { return std::make_unique<DoctorCommand>(); }

}  // namespace lockstep::cli
