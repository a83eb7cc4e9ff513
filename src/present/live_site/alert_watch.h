#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "node/control/client/http_connection.h"
#include "present/live_site/audience.h"
#include "present/live_site/prometheus_alerts.h"

namespace lockstep::live_site {

/// Where a Prometheus answers.
struct PrometheusAt {
  control::Endpoint endpoint;
  std::string authorization = {};  ///< Of that header; empty: none.
  std::string path = {};           ///< Before "/api/v1/alerts": "/prometheus", or empty.
  std::string url = {};            ///< Of its own page, for people.
};

/// "http://host:9090", "https://host/prometheus". Errors: kInvalidArgument (no such URL, or one with a password in it).
Result<PrometheusAt> ReadPrometheusUrl(const std::string& url);

/// Asks a Prometheus for its alerts again and again, in a thread of its own, and tells the audience: "alerts".
class AlertWatch {
 public:
  /// `audience` is borrowed.
  AlertWatch(PrometheusAt at, Audience& audience);
  ~AlertWatch();
  AlertWatch(const AlertWatch&) = delete;
  AlertWatch& operator=(const AlertWatch&) = delete;

 private:
  void Run();
  Result<std::vector<Alert>> Ask();
  void Say(const Result<std::vector<Alert>>& alerts);

  const PrometheusAt at_;
  Audience& audience_;
  std::unique_ptr<control::HttpConnection> connection_;  // Of the thread, as the next.
  std::vector<Alert> last_;
  bool has_answered_ = false;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool ends_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::live_site
