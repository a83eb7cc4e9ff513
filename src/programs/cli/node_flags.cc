#include "programs/cli/node_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/host_name.h"
#include "node/control/client/relay.h"
#include "node/control/discovery/carrier.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run_input.h"

namespace lockstep::cli {
namespace {

/// "n001:9000" in two; a host with several colons is an IPv6 address and has no port here.
Result<control::JobNode> SplitPort(const std::string& text) {
  control::JobNode node{.host = text};
  const size_t colon = text.find(':');
  if (colon == std::string::npos || text.find(':', colon + 1) != std::string::npos) return node;
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error != std::errc() || stopped != end || port == 0 || colon == 0) {
    return Misuse(fmt::format("--host: '{}' is not a host, nor a host and a port", text));
  }
  node.host = text.substr(0, colon);
  node.port = port;
  return node;
}

}  // namespace

void NodeFlags::Declare(CLI::App& app, const char* port_flag) {
  port_flag_ = port_flag;
  app.option_defaults()->group("Nodes");
  app.add_option("--host,--hosts", hosts_, "These nodes, such as a,b or n[001-016] (this node)")->type_name("LIST");
  app.add_option("--hostfile", hostfile_, "The nodes listed in a file, one host per line, as for MPI")
      ->type_name("FILE");
  app.add_option("--job", job_,
                 "The nodes of this job, by SLURM, PBS or Kubernetes, and only its processes.\nWith --host or "
                 "--hostfile, or without a scheduler, it selects processes only")
      ->type_name("ID");
  app.add_option("--via", via_, "Reach nodes without an open port: by srun, ssh, mpiexec or a command with {host}")
      ->type_name("HOW");
  app.add_option("--via-program", via_program_, "With --via: the path of lockstep on the nodes (this program's own)")
      ->type_name("PATH");
  app.add_option("--socket", socket_, "The daemon's Unix socket, here or with --via on the nodes")->type_name("PATH");
  app.add_option(port_flag_, port_, fmt::format("The daemons' port ({})", control::kDefaultPort))
      ->type_name("N")
      ->check(Checked(CLI::Range(1, 65535)));
  app.add_flag("--tls", tls_, "Connect by TLS; the flags below imply it");
  app.add_option("--ca", authority_file_, "CAs that verify the daemons' certificates (the system's)")
      ->type_name("FILE");
  app.add_option("--cert", certificate_file_, "Certificate to show to the daemons")->type_name("FILE");
  app.add_option("--key", key_file_, "The certificate's key, if it is in a separate file")->type_name("FILE");
  app.add_option("--token-file", token_file_, "File with the token for the daemons, mode 0600")->type_name("FILE");
  app.add_option("--parallel", parallel_,
                 fmt::format("Nodes to contact at the same time ({})", control::kDefaultParallel))
      ->type_name("N")
      ->check(Checked(CLI::Range(1, 4096)));
  app.add_option("--connect-timeout", connect_timeout_,
                 "Give up on a node that accepts no connection within this time (5s)")
      ->type_name("TIME");
}

Status NodeFlags::CheckTogether() const {
  const bool names_nodes = !hosts_.empty() || !hostfile_.empty();
  if (!hosts_.empty() && !hostfile_.empty()) return Misuse("--host and --hostfile exclude each other");
  const bool is_encrypted = tls_ || !authority_file_.empty() || !certificate_file_.empty() || !key_file_.empty();
  if (!key_file_.empty() && certificate_file_.empty()) return Misuse("--key needs the --cert that it belongs to");
  if (!via_.empty()) {
    if (is_encrypted || !token_file_.empty()) {
      return Misuse("--via leads to the daemon's Unix socket, which takes neither TLS nor tokens");
    }
    if (port_ != 0) return Misuse(port_flag_ + " and --via exclude each other");
    if (!names_nodes && job_.empty()) return Misuse("--via needs nodes: --job, --host or --hostfile");
    return {};
  }
  if (!via_program_.empty()) return Misuse("--via-program needs --via");
  if (!socket_.empty() && (names_nodes || port_ != 0 || is_encrypted)) {
    return Misuse("--socket is this node's; for other nodes' sockets there is --via");
  }
  if (!names_nodes && job_.empty() && (port_ != 0 || is_encrypted || !token_file_.empty())) {
    return Misuse("name the node: --host localhost for this one");
  }
  return {};
}

bool NodeFlags::is_given() const {
  return !hosts_.empty() || !hostfile_.empty() || !job_.empty() || !socket_.empty() || !via_.empty() || port_ != 0 ||
         tls_ || !token_file_.empty();
}

Result<jobs::Nodes> NodeFlags::FindLocal(bool needs_daemon) const {
  jobs::Nodes nodes;
  nodes.is_local = true;
  nodes.job_id = job_;
  control::Endpoint endpoint{.host = HostName("localhost"), .unix_path = socket_};
  for (const std::string& path : socket_.empty() ? control::LocalSockets() : std::vector<std::string>()) {
    // One that a dead daemon left behind is passed over; one that is there and refuses us says so itself, later.
    const Result<UniqueFd> socket = control::ConnectUnix(path);
    if (!socket && socket.error().code == ErrorCode::kNotFound) continue;
    endpoint.unix_path = path;
    break;
  }
  if (endpoint.unix_path.empty()) {
    if (needs_daemon) return control::NoLocalDaemon();
    return nodes;
  }
  nodes.endpoints.push_back(std::move(endpoint));
  return nodes;
}

Result<control::JobNodes> NodeFlags::NamedNodes() const {
  control::JobNodes named;
  named.job_id = job_;
  if (!hostfile_.empty()) {
    ASSIGN_OR_RETURN(named.nodes, control::ReadHostfile(hostfile_));
  } else {
    ASSIGN_OR_RETURN(const std::vector<std::string> hosts, control::ExpandHostlist(hosts_));
    for (const std::string& host : hosts) {
      ASSIGN_OR_RETURN(control::JobNode node, SplitPort(host));
      named.nodes.push_back(std::move(node));
    }
  }
  if (named.nodes.empty()) return Misuse(fmt::format("{} names no node", hostfile_.empty() ? "--host" : hostfile_));
  return named;
}

Result<control::Endpoint> NodeFlags::EndpointOf(const control::JobNode& node, const control::JobNodes& job) const {
  control::Endpoint endpoint{.host = node.host};
  ASSIGN_OR_RETURN(endpoint.connect_timeout_ns, ParseTime(connect_timeout_, "--connect-timeout"));
  if (endpoint.connect_timeout_ns <= 0) return Misuse("--connect-timeout: more than nothing");
  if (!via_.empty()) {
    ASSIGN_OR_RETURN(const control::Carrier carrier, control::ParseCarrier(via_));
    std::string program = via_program_;
    if (program.empty()) {
      std::error_code error;
      program = std::filesystem::read_symlink("/proc/self/exe", error).string();
      if (error) return Error{ErrorCode::kIo, "this program's own path is not known; name one with --via-program"};
    }
    std::vector<std::string> arguments;
    if (!socket_.empty()) arguments = {"--socket", socket_};
    ASSIGN_OR_RETURN(endpoint.tunnel, control::TunnelCommand(carrier, node, job, program, arguments));
    return endpoint;
  }
  endpoint.address = node.address.empty() ? node.host : node.address;
  endpoint.port = node.port != 0 ? node.port : port_ != 0 ? port_ : control::kDefaultPort;
  endpoint.tls = tls_ || !authority_file_.empty() || !certificate_file_.empty();
  endpoint.authority_file = authority_file_;
  endpoint.certificate_file = certificate_file_;
  endpoint.key_file = key_file_;
  endpoint.token_file = token_file_;
  return endpoint;
}

Result<jobs::Nodes> NodeFlags::Find(bool needs_daemon) const {
  RETURN_IF_ERROR(CheckTogether());
  const bool names_nodes = !hosts_.empty() || !hostfile_.empty();
  if (!names_nodes && (job_.empty() || (!socket_.empty() && via_.empty()))) return FindLocal(needs_daemon);
  std::optional<control::JobNodes> job;
  if (names_nodes) {
    ASSIGN_OR_RETURN(job, NamedNodes());
  }
  if (!names_nodes || via_ == "srun") {
    if (job_.empty()) return Misuse("--via srun needs --job: the step runs in it");
    Result<control::JobNodes> found = control::FindJob(job_);
    // Without a scheduler it is torchelastic's or MPI's word for a job of this node.
    if (!found && found.error().code == ErrorCode::kFailedPrecondition && via_.empty() && !names_nodes) {
      return FindLocal(needs_daemon);
    }
    if (!found && !needs_daemon && via_.empty() && !names_nodes) {
      ASSIGN_OR_RETURN(jobs::Nodes nodes, FindLocal(false));
      nodes.scheduler_problem = found.error().ToString();
      return nodes;
    }
    if (!found) return std::move(found).error();
    if (job) found->nodes = std::move(job->nodes);  // Those that were named; srun refuses what is not the job's.
    job = std::move(*found);
  }
  jobs::Nodes nodes;
  nodes.job_id = job->job_id;
  nodes.is_whole_job = !names_nodes;
  nodes.parallel = parallel_;
  for (const control::JobNode& node : job->nodes) {
    ASSIGN_OR_RETURN(control::Endpoint endpoint, EndpointOf(node, *job));
    nodes.endpoints.push_back(std::move(endpoint));
  }
  return nodes;
}

}  // namespace lockstep::cli
