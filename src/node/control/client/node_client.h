#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/control/api/capture.h"
#include "node/control/api/inspection.h"
#include "node/control/api/network_test.h"
#include "node/control/api/node.h"
#include "node/control/api/process.h"
#include "node/control/api/stages.h"

namespace lockstep::control {

constexpr uint16_t kDefaultPort = 9476;  ///< Of lockstepd's HTTP listener.

/// How a node's daemon is reached.
struct Endpoint {
  std::string host;              ///< For messages, and in trace names when the daemon does not say.
  std::string unix_path = {};    ///< Over this socket. Or:
  std::string address = {};      ///< at this name or IP address,
  uint16_t port = kDefaultPort;  ///< and this port. Or:
  std::vector<std::string> tunnel =
      {};  ///< through this command's standard input and output ("srun ... lockstep tunnel").
  bool tls = false;
  std::string authority_file = {};    ///< CAs that the daemon's certificate is verified against; empty: the system's.
  std::string certificate_file = {};  ///< The caller's own, for daemons that ask for one,
  std::string key_file = {};
  std::string token_file = {};                  ///< Bearer token; mode 0600 is insisted on.
  int64_t connect_timeout_ns = 10'000'000'000;  ///< For connecting and TLS; a tunnel has the request's deadline.
};

/// The local daemons' Unix sockets that may be there, first the likeliest: $LOCKSTEP_SOCKET,
/// /run/lockstep/lockstepd.sock, $XDG_RUNTIME_DIR/lockstep/lockstepd.sock, /tmp/lockstep-UID/HOST/lockstepd.sock. A
/// socket that is not there, or that neither root nor the caller owns, is left out.
std::vector<std::string> LocalSockets();

/// The error that no daemon answers on this node: the paths that were tried, and what to start. kNotFound.
Error NoLocalDaemon();

/// One node's daemon. One connection is kept for the life of this; not thread-safe, use one a thread.
class NodeClient {
 public:
  /// Connects with the first request. Errors: kInvalidArgument (not exactly one way to reach the node; a token without
  /// TLS to another machine), kNotFound, kPermissionDenied, kIo: the token file.
  static Result<std::unique_ptr<NodeClient>> Create(const Endpoint& endpoint);
  virtual ~NodeClient() = default;
  virtual const Endpoint& endpoint() const = 0;

  // `deadline_ns` is a length from the call on: how long it may take, connecting included. Errors: kNotFound (no
  // process listens there: says what to start), kPermissionDenied, kCancelled (deadline), kIo, kLimitExceeded (a body
  // over 64 MiB), kCorruptData; or the daemon's own. Where connecting failed the message says where; else that is the
  // caller's to add.
  virtual Result<NodeStatus> Status(int64_t deadline_ns) = 0;
  virtual Result<std::vector<Process>> Processes(int64_t deadline_ns) = 0;
  virtual Result<Capture> StartCapture(const CaptureSpec& spec, int64_t deadline_ns) = 0;
  virtual Result<std::vector<Capture>> Captures(int64_t deadline_ns) = 0;
  virtual Result<Capture> GetCapture(const std::string& id, int64_t deadline_ns) = 0;
  virtual Result<Capture> CancelCapture(const std::string& id, int64_t deadline_ns) = 0;
  /// One end of a test of the network; see NetworkTestSpec. kNotFound: a daemon that is older than this, too.
  virtual Result<NetworkTest> StartNetworkTest(const NetworkTestSpec& spec, int64_t deadline_ns) = 0;
  virtual Result<NetworkTest> GetNetworkTest(const std::string& id, int64_t deadline_ns) = 0;
  /// Waits until the node has looked. Further errors: kNotFound (no such process), kPermissionDenied (none that the
  /// caller may look at), kUnsupported (a daemon that is older than this).
  virtual Result<Inspection> Inspect(const InspectionSpec& spec, int64_t deadline_ns) = 0;
  /// Steps of the node's ranks. Further errors: kUnsupported (a daemon that is older than this).
  virtual Result<NodeStages> Stages(const StagesQuery& query, int64_t deadline_ns) = 0;
  /// A finished trace's bytes, in pieces as they come; `sink` returning an error ends it. `stall_ns`: without a byte,
  /// given up.
  virtual lockstep::Status Download(const std::string& capture_id, const std::string& trace_name, int64_t stall_ns,
                                    const std::function<lockstep::Status(std::string_view)>& sink) = 0;
};

/// The local daemon: the first of LocalSockets() that answers a status request. Errors: NoLocalDaemon(); the last one's
/// error when there were sockets.
Result<std::unique_ptr<NodeClient>> ConnectLocal(int64_t deadline_ns);

}  // namespace lockstep::control
