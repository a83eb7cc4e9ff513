#include "node/agent/nccl_metrics/nccl_sensor.h"

namespace lockstep::agent {

const MetricSpecs& CollectiveMetricSpecs() {
  static const MetricSpecs specs = {
      {"lockstep_collective_calls_total", "counter", "job_id,rank,pg,op", "Operations of NCCL that have ended."},
      {"lockstep_collective_seconds_total", "counter", "job_id,rank,pg,op",
       "Time of those on the device, first kernel to last, waiting for other ranks included."},
      {"lockstep_collective_bytes_total", "counter", "job_id,rank,pg,op",
       "Their sizes, as nccl-tests counts them: of all_gather, reduce_scatter, all_to_all, gather and scatter what all "
       "ranks have."},
      {"lockstep_collective_bus_bytes_total", "counter", "job_id,rank,pg,op",
       "Those times busbw over algbw: its rate by that of seconds is the bus bandwidth."},
      {"lockstep_collective_enqueued_total", "counter", "job_id,rank,pg", "Operations of NCCL put into a stream."},
      {"lockstep_collective_started_total", "counter", "job_id,rank,pg",
       "Operations of NCCL begun on the device (NCCL 2.26 and later)."},
      {"lockstep_collective_completed_total", "counter", "job_id,rank,pg", "Operations of NCCL that have ended."},
      {"lockstep_collective_oldest_inflight_seconds", "gauge", "job_id,rank,pg",
       "How long ago the oldest operation that has not ended was called; 0: there is none."},
  };
  return specs;
}

}  // namespace lockstep::agent
