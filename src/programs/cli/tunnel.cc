#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "node/control/client/node_client.h"
#include "node/control/client/relay.h"
#include "programs/cli/cli.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {
namespace {

/// `lockstep tunnel`: what `--via` runs on a node, so that the daemon's Unix socket is reached without a port.
class TunnelCommand : public Subcommand {
 public:
  const char* name() const override { return "tunnel"; }
  const char* purpose() const override { return "Carry bytes between standard input/output and this node's daemon"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  std::string socket_;
};

constexpr const char* kTunnelFooter =
    "Commands with --via, such as 'lockstep capture --via ssh', start this on a node and speak\n"
    "HTTP through it: the daemon knows the caller's user, and needs no open port. It ends when\n"
    "either side has closed. Without --socket it tries LOCKSTEP_SOCKET, then the daemon's usual\n"
    "places.\n"
    "Exit status: 0 done; 1 no daemon is there, or the connection failed; 2 misused.\n"
    "\n"
    "Examples:\n"
    "  lockstep tunnel --socket /run/lockstep/lockstepd.sock\n"
    "  printf 'GET /-/healthy HTTP/1.0\\r\\n\\r\\n' | ssh HOST lockstep tunnel";

Result<UniqueFd> ConnectAnywhere() {
  for (const std::string& path : control::LocalSockets()) {
    // One that a dead daemon left behind is as good as none; so is one of root's that is not for us.
    if (Result<UniqueFd> socket = control::ConnectUnix(path)) return socket;
  }
  return control::NoLocalDaemon();
}

void TunnelCommand::Declare(CLI::App& app) {
  app.add_option("--socket", socket_, "The daemon's Unix socket (default: this node's)")->type_name("PATH");
  app.footer(kTunnelFooter);
}

Result<int> TunnelCommand::Run(Console& /*console*/) {
  ASSIGN_OR_RETURN(const UniqueFd socket, socket_.empty() ? ConnectAnywhere() : control::ConnectUnix(socket_));
  RETURN_IF_ERROR(control::Relay(STDIN_FILENO, STDOUT_FILENO, socket.get()));
  return kDone;
}

}  // namespace

std::unique_ptr<Subcommand> MakeTunnel() { return std::make_unique<TunnelCommand>(); }

}  // namespace lockstep::cli
