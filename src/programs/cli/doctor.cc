#include "programs/cli/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/host_name.h"
#include "base/json_writer.h"
#include "node/control/client/node_client.h"
#include "present/report/utf8.h"
#include "programs/cli/cli.h"
#include "programs/cli/doctor_collectives.h"
#include "programs/cli/doctor_job.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run_input.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kLocalAnswerNs = 2'000'000'000;
constexpr int64_t kNodesNs = 15'000'000'000;  // For all nodes of a job to answer.

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

size_t CountOf(const std::vector<Check>& checks, CheckStatus status) {
  return static_cast<size_t>(std::ranges::count(checks, status, &Check::status));
}

void WriteText(const std::vector<Check>& checks, std::ostream& out) {
  for (const Check& check : checks) {
    const std::string name = check.subject.empty() ? check.id : fmt::format("{} {}", check.id, check.subject);
    out << fmt::format("{:<8} {}: {}\n", CheckStatusName(check.status), report::Printable(name),
                       report::Printable(check.finding));
    if (!check.advice.empty()) out << fmt::format("{:<8} -> {}\n", "", report::Printable(check.advice));
  }
  const size_t problems = CountOf(checks, CheckStatus::kProblem);
  const size_t warnings = CountOf(checks, CheckStatus::kWarning);
  out << fmt::format("\n{} problem{}, {} warning{}\n", problems, problems == 1 ? "" : "s", warnings,
                     warnings == 1 ? "" : "s");
}

void WriteJson(const std::vector<Check>& checks, std::ostream& out) {
  JsonDocument json(out, 1);
  json.StartObject().Key("schema").Text("lockstep.doctor/1").Key("partial").Bool(false);
  json.Key("data").StartObject().Key("host").Text(HostName());
  json.Key("problem_count").Uint(CountOf(checks, CheckStatus::kProblem));
  json.Key("warning_count").Uint(CountOf(checks, CheckStatus::kWarning));
  json.Key("checks").StartArray();
  for (const Check& check : checks) {
    json.StartObject().Key("id").Text(check.id).Key("subject").Text(check.subject);
    json.Key("status").Text(CheckStatusName(check.status)).Key("finding").Text(check.finding);
    json.Key("advice").Text(check.advice).Key("figures").StartArray();
    for (const CheckFigure& figure : check.figures) {
      json.StartObject().Key("name").Text(figure.name).Key("value").Double(figure.value);
      json.Key("unit").Text(figure.unit).EndObject();
    }
    json.EndArray().Key("hosts").StartArray();
    for (const std::string& host : check.hosts) json.Text(host);
    json.EndArray().Key("ranks").StartArray();
    for (const int32_t rank : check.ranks) json.Int(rank);
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject().Key("ledger").StartArray().EndArray().EndObject();
  json.EndLine();
}

}  // namespace

void DoctorCommand::Declare(CLI::App& app) {
  app.add_option("-o,--output", output_folder_, "The folder that captures will be written to (.)")->type_name("DIR");
  nodes_.Declare(app);
  app.add_option("--timeout", timeout_, "Time limit for all nodes and tests of a job (60s)")->type_name("TIME");
  app.add_option("--mpi", mpi_, "Also test collectives, by this command: 'mpirun --host a,b lockstep-mpi-check'")
      ->type_name("COMMAND");
  app.add_flag("!--no-network", with_network_, "Leave out the network between the nodes of a job");
  app.add_flag("--json", json_, "One JSON object (lockstep.doctor/1, docs/json.md)");
  app.footer(kDoctorFooter);
}

NodeFacts DoctorCommand::Collect() const {
  NodeFacts facts;
  facts.output_folder = output_folder_;
  const auto client = control::ConnectLocal(kLocalAnswerNs);
  if (!client) {
    facts.daemon_error = client.error().ToString();
  } else if (auto status = (*client)->Status(kLocalAnswerNs); !status) {
    facts.daemon_error = status.error().ToString();
  } else {
    facts.daemon = std::move(*status);
    facts.daemon_socket = (*client)->endpoint().unix_path;
    if (auto processes = (*client)->Processes(kLocalAnswerNs)) facts.registered = std::move(*processes);
  }
  facts.processes = FindTorchProcesses();
  return facts;
}

Result<std::vector<Check>> DoctorCommand::CheckJobNodes() const {
  ASSIGN_OR_RETURN(const int64_t timeout_ns, ParseTime(timeout_, "--timeout"));
  if (timeout_ns <= 0) return Misuse("--timeout: more than nothing");
  ASSIGN_OR_RETURN(const Nodes nodes, nodes_.Find());
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
  const StatusView view = AskNodes(nodes, std::min(timeout_ns, kNodesNs));
  JobFacts facts{.view = view, .tested_nodes = {}, .pairs = {}};
  std::vector<control::Endpoint> endpoints;
  std::vector<std::string> settings;
  for (size_t i = 0; i < view.nodes.size(); ++i) {
    if (!view.nodes[i].status) continue;
    facts.tested_nodes.push_back(i);
    endpoints.push_back(view.nodes[i].endpoint);
    for (const control::Process& process : view.nodes[i].processes) {
      settings.insert(settings.end(), process.settings.begin(), process.settings.end());
    }
  }
  const auto left_ns = [end] { return std::max<int64_t>((end - std::chrono::steady_clock::now()).count(), 1); };
  // Before the network is: a job that waits for its links would look slow.
  JobLook look = LookAtRanks(nodes, nodes_.names_socket(), left_ns());
  facts.verdict = std::move(look.verdict);
  facts.no_verdict = std::move(look.no_verdict);
  facts.moved_ranks = std::move(look.moved_ranks);
  facts.devices = std::move(look.devices);
  facts.loads = std::move(look.loads);
  if (with_network_) {
    facts.pairs = TestPairs(endpoints, PairsOf(endpoints.size()), InterfacesOf(settings), left_ns());
  }
  if (!mpi_.empty()) {
    ASSIGN_OR_RETURN(facts.collectives, CheckCollectives(mpi_, left_ns()));
  }
  return CheckJob(facts);
}

Result<int> DoctorCommand::Run(Console& console) {
  std::vector<Check> checks;
  if (nodes_.names_nodes()) {
    ASSIGN_OR_RETURN(checks, CheckJobNodes());
  } else {
    checks = CheckNode(Collect());
    if (!mpi_.empty()) {
      ASSIGN_OR_RETURN(const int64_t timeout_ns, ParseTime(timeout_, "--timeout"));
      if (timeout_ns <= 0) return Misuse("--timeout: more than nothing");
      ASSIGN_OR_RETURN(Check collectives, CheckCollectives(mpi_, timeout_ns));
      checks.push_back(std::move(collectives));
    }
  }
  if (json_) {
    WriteJson(checks, console.out);
  } else {
    WriteText(checks, console.out);
  }
  return CountOf(checks, CheckStatus::kProblem) > 0 ? kFinding : kDone;
}

}  // namespace lockstep::cli
