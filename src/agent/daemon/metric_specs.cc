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
      {"process_cpu_seconds_total", "counter", "", "CPU time of the daemon, user and system."},
      {"process_resident_memory_bytes", "gauge", "", "Resident memory of the daemon."},
      {"process_open_fds", "gauge", "", "Open file descriptors of the daemon."},
      {"process_max_fds", "gauge", "", "File descriptors that it may open."},
      {"process_start_time_seconds", "gauge", "", "When it started, in seconds since 1970."},
  };
  return specs;
}

}  // namespace lockstep::agent
