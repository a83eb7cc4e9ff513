#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/control/client/fan_out.h"
#include "node/control/client/node_client.h"
#include "node/control/discovery/hosts.h"
#include "node/jobs/nodes.h"

namespace CLI {
class App;
}

namespace lockstep::cli {

/// The flags that say which nodes, and how they are reached: --host, --hostfile, --job, --via, --tls and their kin.
class NodeFlags {
 public:
  /// `port_flag`: what the flag of the daemons' port is called, where --port is another.
  void Declare(CLI::App& app, const char* port_flag = "--port");
  /// Asks schedulers and reads hostfiles as needed; without flags this node's daemon, the first of LocalSockets() that
  /// takes a connection. Errors: kInvalidArgument (flags that do not go together), kNotFound, and those of
  /// node/control/discovery.
  Result<jobs::Nodes> Find() const { return Find(true); }
  /// The same for what can do without a daemon on this node: where there is none, `is_local` comes without endpoints. A
  /// job that no scheduler can be asked for may be this node's, too.
  Result<jobs::Nodes> FindWithoutDaemon() const { return Find(false); }
  /// Whether any of the flags was given.
  bool is_given() const;
  /// Whether this node's daemon itself is named.
  bool names_socket() const { return !socket_.empty(); }
  /// Whether any flag names a node or job.
  bool names_nodes() const { return !hosts_.empty() || !hostfile_.empty() || !job_.empty() || !socket_.empty(); }
  /// What --job said, for what does not ask lockstepd.
  const std::string& job() const { return job_; }

 private:
  Result<jobs::Nodes> Find(bool needs_daemon) const;
  Status CheckTogether() const;
  Result<jobs::Nodes> FindLocal(bool needs_daemon) const;
  Result<control::JobNodes> NamedNodes() const;
  Result<control::Endpoint> EndpointOf(const control::JobNode& node, const control::JobNodes& job) const;

  std::string hosts_;
  std::string hostfile_;
  std::string job_;
  std::string socket_;
  uint16_t port_ = 0;
  std::string port_flag_ = "--port";
  std::string via_;
  std::string via_program_;
  bool tls_ = false;
  std::string authority_file_;
  std::string certificate_file_;
  std::string key_file_;
  std::string token_file_;
  size_t parallel_ = control::kDefaultParallel;
  std::string connect_timeout_ = "5s";
};

}  // namespace lockstep::cli
