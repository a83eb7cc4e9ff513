#include "node/jobs/status_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "base/most_ranks.h"
#include "base/now.h"
#include "node/control/client/job_capture_choice.h"
#include "node/control/client/job_links.h"

namespace lockstep::jobs {
namespace {

using control::Capture;
using control::CaptureTarget;
using control::Process;

// The first exchange makes the connection; the quickest of the others says how far the clocks are apart.
constexpr int kExchanges = 3;

Status Ask(NodeView& node, int64_t left_ns, const control::CaptureSelector& selector) {
  const int64_t end_ns = UnixNow() + left_ns;
  const auto left = [&] { return std::min(left_ns, end_ns - UnixNow()); };
  ASSIGN_OR_RETURN(const std::unique_ptr<control::NodeClient> client, control::NodeClient::Create(node.endpoint));
  std::vector<control::ClockExchange> exchanges;
  for (int i = 0; i < kExchanges; ++i) {
    control::ClockExchange exchange;
    exchange.sent_unix_ns = UnixNow();
    ASSIGN_OR_RETURN(node.status, client->Status(left()));
    exchange.received_unix_ns = UnixNow();
    exchange.node_unix_ns = node.status->now_unix_ns;
    if (!node.status->host.empty()) node.host = node.status->host;
    if (i > 0) exchanges.push_back(exchange);
  }
  node.clock = control::MeasureClock(exchanges);
  ASSIGN_OR_RETURN(node.processes, client->Processes(left()));
  std::erase_if(node.processes, [&](const Process& process) { return !control::Matches(selector, process); });
  ASSIGN_OR_RETURN(node.captures, client->Captures(left()));
  if (selector.job_id.empty()) return {};
  std::erase_if(node.captures, [&](const Capture& capture) {
    return capture.spec.selector.job_id != selector.job_id &&
           std::none_of(capture.targets.begin(), capture.targets.end(),
                        [&](const CaptureTarget& target) { return control::Matches(selector, target.process); });
  });
  return {};
}

// What tells one job from another.
std::tuple<bool, control::JobKind, std::string, uint32_t, std::string> StatusJobKeyOf(const NodeView& node,
                                                                                      const Process& process) {
  const bool is_lone = process.job_id.empty() && !process.rank;
  std::string launcher;
  if (process.job_id.empty() && !is_lone && process.client_pids.size() > 1) {
    launcher = fmt::format("{} {}", node.host, process.client_pids[1]);
  }
  return {is_lone, process.job_kind, process.job_id, process.uid, launcher};
}

bool ComesFirst(const PlacedProcess& a, const PlacedProcess& b) {
  const auto key = [](const PlacedProcess& placed) {
    return std::tuple(placed.process->rank.value_or(std::numeric_limits<int32_t>::max()), placed.node->host,
                      placed.process->pid);
  };
  return key(a) < key(b);
}

void Finish(JobView& job) {
  std::sort(job.ranks.begin(), job.ranks.end(), ComesFirst);
  std::sort(job.helpers.begin(), job.helpers.end(), ComesFirst);
  std::set<std::string> hosts;
  std::set<int32_t> ranks;
  for (const auto* processes : {&job.ranks, &job.helpers}) {
    for (const PlacedProcess& placed : *processes) hosts.insert(placed.node->host);
  }
  for (const PlacedProcess& placed : job.ranks) {
    if (placed.process->rank) ranks.insert(*placed.process->rank);
    if (placed.process->world_size) {
      job.world_size = std::max(job.world_size.value_or(0), *placed.process->world_size);
    }
  }
  job.hosts.assign(hosts.begin(), hosts.end());
  if (ranks.empty()) return;
  for (int32_t rank = 0; rank < std::min(job.world_size.value_or(0), kMostRanks); ++rank) {
    if (!ranks.contains(rank)) job.missing_ranks.push_back(rank);
  }
}

}  // namespace

size_t StatusView::answered_count() const {
  return static_cast<size_t>(
      std::count_if(nodes.begin(), nodes.end(), [](const NodeView& node) { return node.status.has_value(); }));
}

StatusView AskNodes(const Nodes& nodes, int64_t deadline_ns) {
  StatusView view;
  view.job_id = nodes.job_id;
  view.asked_unix_ns = UnixNow();
  for (const control::Endpoint& endpoint : nodes.endpoints) {
    NodeView node;
    node.endpoint = endpoint;
    node.host = endpoint.host;
    view.nodes.push_back(std::move(node));
  }
  control::CaptureSelector selector;
  selector.job_id = nodes.job_id;
  selector.include_launchers = true;
  const std::vector<Status> statuses =
      control::FanOut<void>(view.nodes.size(), nodes.parallel, deadline_ns,
                            [&](size_t i, int64_t left_ns) -> Status { return Ask(view.nodes[i], left_ns, selector); });
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (!statuses[i]) view.nodes[i].error = statuses[i].error();
  }
  return view;
}

std::vector<JobView> JobsOf(const StatusView& view) {
  std::map<std::tuple<bool, control::JobKind, std::string, uint32_t, std::string>, JobView> jobs;
  for (const NodeView& node : view.nodes) {
    for (const Process& process : node.processes) {
      JobView& job = jobs[StatusJobKeyOf(node, process)];
      job.kind = process.job_kind;
      job.id = process.job_id;
      job.uid = process.uid;
      if (job.user.empty()) job.user = process.user;
      (process.role == control::ProcessRole::kTrainer ? job.ranks : job.helpers).push_back({&node, &process});
    }
  }
  std::vector<JobView> sorted;
  for (auto& [key, job] : jobs) {
    Finish(job);
    sorted.push_back(std::move(job));
  }
  return sorted;
}

std::vector<GroupView> GroupsOf(const StatusView& view) {
  std::map<std::string, GroupView> groups;
  for (const NodeView& node : view.nodes) {
    for (const Capture& capture : node.captures) {
      const std::string& name = capture.spec.group.empty() ? capture.id : capture.spec.group;
      GroupView& group = groups[name];
      group.group = name;
      group.created_unix_ns =
          group.captures.empty() ? capture.created_unix_ns : std::min(group.created_unix_ns, capture.created_unix_ns);
      group.captures.emplace_back(&node, &capture);
      group.is_running = group.is_running || !control::IsFinal(capture.state);
      group.target_count += capture.targets.size();
      group.done_count += static_cast<size_t>(
          std::count_if(capture.targets.begin(), capture.targets.end(),
                        [](const CaptureTarget& target) { return target.state == control::TargetState::kDone; }));
    }
  }
  std::vector<GroupView> sorted;
  for (auto& [name, group] : groups) sorted.push_back(std::move(group));
  std::stable_sort(sorted.begin(), sorted.end(), [](const GroupView& a, const GroupView& b) {
    return std::tuple(!a.is_running, -a.created_unix_ns) < std::tuple(!b.is_running, -b.created_unix_ns);
  });
  return sorted;
}

}  // namespace lockstep::jobs
