#include "agent/daemon/metrics.h"

namespace lockstep::agent {

// Names: units in base units, counters end in _total. Texts hold no line break and no backslash: the writer would not
// escape them.
const std::vector<MetricSpec>& MetricSpecs() {
  static const std::vector<MetricSpec> specs = {
      {"lockstep_build_info", "gauge", "version", "1; the version is its label."},
      {"lockstep_processes", "gauge", "role,state", "Registered processes."},
      {"lockstep_captures_active", "gauge", "state", "Captures that wait or run."},
      {"lockstep_captures_total", "counter", "outcome",
       "Captures that have ended since the daemon started, as far as they were still there when it was asked."},
      {"lockstep_capture_bytes_total", "counter", "outcome", "Bytes of their traces."},
      {"lockstep_api_requests_total", "counter", "handler,code", "HTTP requests answered, by route and status."},
      {"lockstep_api_auth_failures_total", "counter", "reason",
       "Requests without the credentials that they need (unknown), and those from where too many of them came "
       "(limited)."},
      {"lockstep_http_connections", "gauge", "", "Open HTTP connections."},
      {"lockstep_http_connections_accepted_total", "counter", "", "HTTP connections taken."},
      {"lockstep_http_connections_rejected_total", "counter", "reason",
       "HTTP connections closed at once beyond a limit (refused), or while they waited, to make room (displaced)."},
      {"lockstep_kineto_datagrams_total", "counter", "", "Datagrams received on Kineto's sockets."},
      {"lockstep_kineto_replies_total", "counter", "", "Polls answered."},
      {"lockstep_kineto_deliveries_total", "counter", "", "Answers that carried a request to trace."},
      {"lockstep_kineto_registrations_total", "counter", "", "Processes that registered."},
      {"lockstep_kineto_ended_total", "counter", "", "Registered processes that have ended."},
      {"lockstep_kineto_dropped_total", "counter", "reason",
       "Datagrams that got no answer: malformed, unknown_tag, forged (another process's credentials), unanswerable (an "
       "address that a reply must not be sent to), limited, late, withheld (an older reply may still be there), "
       "failed."},
      {"process_cpu_seconds_total", "counter", "", "CPU time of the daemon, user and system."},
      {"process_resident_memory_bytes", "gauge", "", "Resident memory of the daemon."},
      {"process_open_fds", "gauge", "", "Open file descriptors of the daemon."},
      {"process_max_fds", "gauge", "", "File descriptors that it may open."},
      {"process_start_time_seconds", "gauge", "", "When it started, in seconds since 1970."},
  };
  return specs;
}

}  // namespace lockstep::agent
