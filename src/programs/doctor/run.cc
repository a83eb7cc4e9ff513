#include "programs/doctor/run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "node/control/client/node_client.h"
#include "node/jobs/status_view.h"
#include "programs/doctor/collectives.h"
#include "programs/doctor/job.h"
#include "programs/doctor/look.h"
#include "programs/doctor/network.h"

namespace lockstep::doctor {
namespace {

constexpr int64_t kLocalAnswerNs = 2'000'000'000;
constexpr int64_t kNodesNs = 15'000'000'000;  // For all nodes of a job to answer.

NodeFacts CollectFacts(const std::string& output_folder) {
  NodeFacts facts;
  facts.output_folder = output_folder;
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
  facts.processes = local::FindTorchProcesses();
  return facts;
}

}  // namespace

std::vector<Check> CheckThisNode(const std::string& output_folder) { return CheckNode(CollectFacts(output_folder)); }

Result<std::vector<Check>> CheckJobNodes(const JobRequest& request) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(request.timeout_ns);
  const jobs::StatusView view = jobs::AskNodes(request.nodes, std::min(request.timeout_ns, kNodesNs));
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
  JobLook look = LookAtRanks(request.nodes, request.names_daemon, left_ns());
  facts.verdict = std::move(look.verdict);
  facts.no_verdict = std::move(look.no_verdict);
  facts.moved_ranks = std::move(look.moved_ranks);
  facts.devices = std::move(look.devices);
  facts.loads = std::move(look.loads);
  if (request.with_network) {
    facts.pairs = TestPairs(endpoints, PairsOf(endpoints.size()), InterfacesOf(settings), left_ns());
  }
  if (!request.mpi_command.empty()) {
    ASSIGN_OR_RETURN(facts.collectives, CheckCollectives(request.mpi_command, left_ns()));
  }
  return CheckJob(facts);
}

}  // namespace lockstep::doctor
