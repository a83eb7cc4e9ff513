#include "node/control/client/job_links.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/now.h"

namespace lockstep::control {
namespace {

// A first connection through srun or ssh takes seconds where the cluster is busy.
constexpr int64_t kAskNs = 20'000'000'000;
constexpr int64_t kAskThroughTunnelNs = 60'000'000'000;
constexpr int kExchanges = 4;

}  // namespace

JobLinks::JobLinks(const JobCaptureRequest& request) : request_(request), clients_(request.nodes.size()) {}

std::vector<Status> JobLinks::ForEach(const std::vector<JobNodeState>& nodes, int64_t deadline_ns,
                                      const std::function<bool(size_t)>& wanted,
                                      const std::function<Status(size_t, NodeClient&, int64_t)>& work) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (wanted(i)) chosen.push_back(i);
  }
  std::vector<Status> all(nodes.size());
  const auto results =
      FanOut<void>(chosen.size(), request_.parallel, deadline_ns, [&](size_t k, int64_t left_ns) -> Status {
        const size_t i = chosen[k];
        if (clients_[i] == nullptr) {
          ASSIGN_OR_RETURN(clients_[i], request_.connect(nodes[i].endpoint));
        }
        Status status = work(i, *clients_[i], left_ns);
        if (!status && (status.error().code == ErrorCode::kIo || status.error().code == ErrorCode::kCancelled)) {
          clients_[i].reset();
        }
        return status;
      });
  for (size_t k = 0; k < chosen.size(); ++k) all[chosen[k]] = results[k];
  return all;
}

Status JobLinks::AskOne(JobNodeState& node, NodeClient& client, int64_t left_ns, std::vector<Process>& processes) {
  std::vector<ClockExchange> exchanges;
  for (int i = 0; i < kExchanges; ++i) {
    ClockExchange exchange;
    exchange.sent_unix_ns = UnixNow();
    ASSIGN_OR_RETURN(const NodeStatus status, client.Status(left_ns));
    exchange.received_unix_ns = UnixNow();
    exchange.node_unix_ns = status.now_unix_ns;
    node.allows_unsafe_captures = status.allows_unsafe_captures;
    node.host = status.host.empty() ? node.endpoint.host : status.host;
    // The first one makes the connection.
    if (i == 0) continue;
    exchanges.push_back(exchange);
    node.exchange_ns = std::max(node.exchange_ns, exchange.received_unix_ns - exchange.sent_unix_ns);
  }
  node.clock = MeasureClock(exchanges);
  ASSIGN_OR_RETURN(processes, client.Processes(left_ns));
  node.process_count = processes.size();
  return {};
}

std::vector<NodeProcesses> JobLinks::Ask(std::vector<JobNodeState>& nodes) {
  std::vector<std::vector<Process>> processes(nodes.size());
  const bool tunnels =
      std::any_of(nodes.begin(), nodes.end(), [](const auto& n) { return !n.endpoint.tunnel.empty(); });
  const std::vector<Status> statuses = ForEach(
      nodes, tunnels ? kAskThroughTunnelNs : kAskNs, [](size_t) { return true; },
      [&](size_t i, NodeClient& client, int64_t left_ns) { return AskOne(nodes[i], client, left_ns, processes[i]); });
  std::vector<NodeProcesses> answers;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (statuses[i]) {
      answers.push_back({i, nodes[i].host, std::move(processes[i])});
    } else {
      nodes[i].problem = statuses[i].error().ToString();
    }
  }
  return answers;
}

std::vector<NodeProcesses> JobLinks::Refresh(const std::vector<JobNodeState>& nodes) {
  std::vector<std::vector<Process>> processes(nodes.size());
  const std::vector<Status> statuses = ForEach(
      nodes, kAskNs, [&](size_t i) { return nodes[i].problem.empty(); },
      [&](size_t i, NodeClient& client, int64_t left_ns) -> Status {
        ASSIGN_OR_RETURN(processes[i], client.Processes(left_ns));
        return {};
      });
  std::vector<NodeProcesses> answers;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].problem.empty() && statuses[i]) answers.push_back({i, nodes[i].host, std::move(processes[i])});
  }
  return answers;
}

int64_t JobLinks::RoundNs(const std::vector<JobNodeState>& nodes) const {
  int64_t slowest = 0;
  for (const JobNodeState& node : nodes) slowest = std::max(slowest, node.exchange_ns);
  const size_t parallel = std::max<size_t>(request_.parallel, 1);
  return slowest * static_cast<int64_t>((nodes.size() + parallel - 1) / parallel);
}

}  // namespace lockstep::control
