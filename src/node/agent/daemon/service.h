#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/http/http_server.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "node/agent/capture/capture_manager.h"
#include "node/agent/daemon/access.h"
#include "node/agent/daemon/api.h"
#include "node/agent/daemon/config.h"
#include "node/agent/daemon/inspection_desk.h"
#include "node/agent/daemon/log.h"
#include "node/agent/daemon/metrics.h"
#include "node/agent/daemon/users.h"
#include "node/agent/dynolog/rpc_server.h"
#include "node/agent/history/recorder.h"
#include "node/agent/job_metrics/kept_steps.h"
#include "node/agent/job_metrics/step_exemplars.h"
#include "node/agent/kineto/endpoint.h"
#include "node/agent/network/network_tester.h"
#include "node/agent/sensors/sensor_board.h"

namespace lockstep::agent {

/// Everything that a running daemon consists of. Made by Open, it serves until it is destroyed.
class Service {
 public:
  /// Makes the folders, binds the sockets. Errors: what prevents that, and what to do about it.
  static Result<std::unique_ptr<Service>> Open(const DaemonConfig& config, Log* log);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Applies settings that may change while it serves: tokens, certificates, roles, the capture group. Error: nothing
  /// has changed. Other changed settings are named in the log: they need a restart.
  Status Reload(const DaemonConfig& config);
  /// Where it listens: "unix:PATH", "127.0.0.1:9476", "abstract:dynolog".
  std::vector<std::string> Listeners() const;

 private:
  Service(const DaemonConfig& config, Log* log);
  Status Start();
  Status OpenServer();
  Status OpenDynolog();
  void StartSensors();
  void StartHistory();
  control::NodeStatus NodeState() const;
  std::vector<std::string> Problems() const;
  std::vector<MetricSample> Samples() const;

  DaemonConfig config_;  // Of the control thread.
  Log* const log_;
  const std::string host_;
  const int64_t started_unix_ns_;
  SystemUsers users_;
  FailureLimiter limiter_;
  Metrics metrics_;
  UniqueFd state_lock_;
  // In the order of their making; each borrows from those above.
  std::unique_ptr<KinetoEndpoint> kineto_;
  std::unique_ptr<CaptureManager> captures_;
  NetworkTester network_{host_};
  std::unique_ptr<InspectionDesk> inspections_;
  KeptSteps kept_steps_;
  StepExemplars exemplars_;
  std::unique_ptr<SensorBoard> sensors_;
  std::unique_ptr<HistoryRecorder> history_;  ///< Null: the settings want none, or no file can be had.
  std::unique_ptr<Api> api_;
  std::unique_ptr<http::HttpServer> server_;
  std::unique_ptr<DynologServer> dynolog_;
  std::jthread server_thread_;
};

/// Makes a folder and those above it; the last one must have `mode` and belong to this user, else it is refused:
/// another user may have made it. Errors: kIo, kPermissionDenied.
Status MakeOwnFolder(const std::string& path, uint32_t mode);

}  // namespace lockstep::agent
