#include "node/agent/daemon/metrics.h"
#include "node/agent/daemon/serving_objectives.h"
#include "node/agent/engines/engine_sensor.h"
#include "node/agent/gpu/gpu_metrics.h"
#include "node/agent/host/host_sensor.h"
#include "node/agent/host/infiniband_sensor.h"
#include "node/agent/host/pressure_sensor.h"
#include "node/agent/host/process_sensor.h"
#include "node/agent/host/store_sensor.h"
#include "node/agent/job_metrics/job_metrics.h"
#include "node/agent/log_metrics/log_sensor.h"
#include "node/agent/nccl_metrics/nccl_sensor.h"
#include "node/agent/sensors/sensor_board.h"
#include "node/agent/sensors/serving_metric_specs.h"

namespace lockstep::agent {

const MetricSpecs& DaemonMetricSpecs() {
  static const MetricSpecs specs = {
      {"lockstep_build_info", "gauge", "version", "1; the version is its label."},
      {"lockstep_processes", "gauge", "role,state", "Registered processes."},
      {"lockstep_captures_active", "gauge", "state", "Captures that wait or run."},
      {"lockstep_captures_total", "counter", "outcome",
       "Captures that have ended since the daemon started, as far as they were still there when it was asked."},
      {"lockstep_capture_deaths_total", "counter", "when",
       "Traced processes that a signal or an error ended: within a capture, or in the minute after it."},
      {"lockstep_capture_bytes_total", "counter", "outcome", "Bytes of their traces."},
      {"lockstep_capture_disk_full_total", "counter", "",
       "Traces that a process could not write as the disk was full."},
      {"lockstep_store_bytes", "gauge", "", "Finished traces that are kept."},
      {"lockstep_store_limit_bytes", "gauge", "", "The most that they may take."},
      {"lockstep_store_evicted_bytes_total", "counter", "",
       "Bytes of traces that were removed for their age, their number or that limit."},
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
      {"lockstep_history_bytes", "gauge", "", "Size of the file with the recent history."},
      {"lockstep_history_limit_bytes", "gauge", "", "The most that it may take."},
      {"lockstep_series_dropped_total", "counter", "reason",
       "Series that were left out of an answer, at each answer: rank (its rank has too many), job (its job has, "
       "besides its ranks), node (all together are), label (over 256 bytes, or no UTF-8)."},
      {"process_cpu_seconds_total", "counter", "", "CPU time of the daemon, user and system."},
      {"process_resident_memory_bytes", "gauge", "", "Resident memory of the daemon."},
      {"process_open_fds", "gauge", "", "Open file descriptors of the daemon."},
      {"process_max_fds", "gauge", "", "File descriptors that it may open."},
      {"process_start_time_seconds", "gauge", "", "When it started, in seconds since 1970."},
  };
  return specs;
}

MetricSpecs AllMetricSpecs() {
  MetricSpecs all = DaemonMetricSpecs();
  for (const MetricSpecs* more :
       {&SensorMetricSpecs(), &JobMetricSpecs(), &ServingMetricSpecs(), &EngineMetricSpecs(), &ObjectiveMetricSpecs(),
        &LogMetricSpecs(), &CollectiveMetricSpecs(), &ProcessMetricSpecs(), &GpuMetricSpecs(), &InfinibandMetricSpecs(),
        &StoreMetricSpecs(), &PressureMetricSpecs(), &HostMetricSpecs()})
    all.insert(all.end(), more->begin(), more->end());
  return all;
}

}  // namespace lockstep::agent
