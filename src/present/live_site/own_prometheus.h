#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/subprocess.h"
#include "base/temporary_folder.h"
#include "node/control/client/node_client.h"

namespace lockstep::live_site {

struct PrometheusSetup {
  std::vector<control::Endpoint> nodes;  ///< Each reached at an address: Prometheus scrapes them itself.
  std::string data_folder = {};          ///< For its database; empty: one that goes with it.
  std::string rules_folder = {};         ///< Rules in place of those that are shipped: its *.yml; empty: those.
  int64_t interval_ns = 15'000'000'000;  ///< Between two scrapes; whole milliseconds.
  std::string program = "prometheus";    ///< In PATH, or a path.
};

/// Its configuration, as JSON, which is YAML too: the nodes with their TLS and token files, and `rules`. Errors:
/// kInvalidArgument (a node that is not reached at an address: says what to name instead; nodes that differ in how they
/// are reached are what no flag can ask for).
Result<std::string> PrometheusConfig(const PrometheusSetup& setup, const std::vector<std::string>& rules);

/// The port of 127.0.0.1 that Prometheus's log says it listens on, as soon as it says so: Prometheus 2 and 3 put it
/// into their lines with other fields before it.
std::optional<uint16_t> ListeningPort(std::string_view log);

/// The machine's own Prometheus with the shipped rules, on a free port of 127.0.0.1 and behind a password of its own,
/// since other users of the machine reach that port too. Ends with this, and with this program however it ends.
class OwnPrometheus {
 public:
  /// Waits until it listens. From the main thread. Errors: kNotFound (not installed: says how to), kInvalidArgument,
  /// kIo (it ended at once: with its last line), kCancelled (it does not listen in time, or `pause` said so).
  /// `pause`: waits a moment; true: it is to end.
  static Result<std::unique_ptr<OwnPrometheus>> Start(const PrometheusSetup& setup, const std::function<bool()>& pause);
  ~OwnPrometheus();
  OwnPrometheus(const OwnPrometheus&) = delete;
  OwnPrometheus& operator=(const OwnPrometheus&) = delete;

  uint16_t port() const { return port_; }
  const std::string& log_file() const { return log_file_; }
  /// Of the header Authorization.
  std::string authorization() const;
  /// Of its page, with its password.
  std::string url() const;

 private:
  OwnPrometheus() : folder_("lockstep-prometheus") {}
  Status WriteFiles(const PrometheusSetup& setup);
  Status WaitForPort(const std::function<bool()>& pause);

  TemporaryFolder folder_;  ///< Configuration, rules, log and, where no other was named, the database.
  std::string password_;
  std::string log_file_;
  ChildProcess process_;
  uint16_t port_ = 0;
};

}  // namespace lockstep::live_site
