#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/http/http_message.h"
#include "base/mutex.h"
#include "node/agent/capture/capture_manager.h"
#include "node/agent/daemon/access.h"
#include "node/agent/daemon/inspection_desk.h"
#include "node/agent/daemon/metrics.h"
#include "node/agent/kineto/registry.h"
#include "node/agent/network/network_tester.h"
#include "node/control/api/history.h"
#include "node/control/api/node.h"
#include "node/control/api/stages.h"

namespace lockstep::agent {

/// What the routes work on; all of it is borrowed and thread-safe.
struct ApiParts {
  CaptureManager* captures = nullptr;
  Registry* registry = nullptr;
  Metrics* metrics = nullptr;
  NetworkTester* network = nullptr;
  InspectionDesk* inspections = nullptr;
  std::function<control::NodeStatus()> status;         ///< Without counts and problems, which are added here.
  std::function<std::vector<std::string>()> problems;  ///< Of the daemon itself.
  std::function<std::vector<MetricSample>()> samples;  ///< Of other parts, for /metrics.
  std::function<std::vector<prometheus::MetricFamily>()> measured;  ///< By sensors, for /metrics; may be null.
  /// For OpenMetrics, of captures, newest first; may be null.
  std::function<std::vector<Exemplar>(const std::vector<control::Capture>&)> exemplars;
  std::function<control::History(const control::HistoryQuery&)> history;   ///< Of what the sensors saw.
  std::function<control::NodeStages(const control::StagesQuery&)> stages;  ///< Of the node's ranks.
  std::function<void(const std::string& line)> audit;  ///< Who did what, or was refused it; one printable line.
  std::function<int64_t()> now_ns;                     ///< Monotonic.
};

/// The routes of docs/formats/daemon-api.md. Thread-safe; knows no sockets.
class Api {
 public:
  Api(ApiParts parts, std::shared_ptr<const Access> access);

  http::Response Handle(const http::Request& request);
  /// An answer that the transport gives itself, in the form of the routes' errors.
  static http::Response Refuse(int status, const std::string& sentence);

  /// From here on, callers are told apart by this.
  void SetAccess(std::shared_ptr<const Access> access);
  std::shared_ptr<const Access> access();
  void CloseStreams();

  /// One row of the table: a route and the role that it needs.
  struct Route {
    const char* methods;  ///< "GET" (then HEAD goes there too), "POST", "DELETE".
    const char* pattern;  ///< Segments in braces match any one segment.
    Role least;
  };
  static const std::vector<Route>& Routes();

 private:
  struct Call {
    const http::Request& request;
    Identity identity;
    std::vector<std::string> segments;  ///< Those in braces.
  };
  using Answer = http::Response (Api::*)(const Call&);
  struct Entry;
  static const std::vector<Entry>& Entries();

  http::Response Authorize(const Entry& entry, const http::Request& request, Call* call);
  http::Response GetStatus(const Call& call);
  http::Response GetProcesses(const Call& call);
  http::Response GetCaptures(const Call& call);
  http::Response PostCapture(const Call& call);
  http::Response GetCapture(const Call& call);
  http::Response DeleteCapture(const Call& call);
  http::Response GetEvents(const Call& call);
  http::Response GetTrace(const Call& call);
  http::Response PostNetworkTest(const Call& call);
  http::Response GetNetworkTest(const Call& call);
  http::Response PostInspection(const Call& call);
  http::Response GetInspection(const Call& call);
  http::Response GetHistory(const Call& call);
  http::Response GetStages(const Call& call);
  http::Response GetMetrics(const Call& call);
  http::Response GetHealthy(const Call& call);
  http::Response GetReady(const Call& call);
  std::vector<std::string> Problems() const;

  const ApiParts parts_;
  Mutex mutex_;
  std::shared_ptr<const Access> access_ LOCKSTEP_GUARDED_BY(mutex_);  // Shared with requests under way.
  std::vector<std::weak_ptr<http::EventStream>> streams_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::agent
