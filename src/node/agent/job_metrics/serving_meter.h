#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/histogram.h>

#include <cstdint>

#include "node/agent/job_metrics/rank_meter.h"
#include "node/agent/job_metrics/recent_quantiles.h"

namespace lockstep::agent {

/// Requests of one kind, of all ranks of a job on this node.
class ServingMeter {
 public:
  ServingMeter();
  void Take(const EndedRequest& request);

  uint64_t request_count() const { return request_count_; }
  uint64_t failure_count() const { return failure_count_; }
  uint64_t output_count() const { return output_count_; }

  // In seconds. Buckets are those that vLLM's metrics have, so that its dashboards' questions can be asked.
  prometheus::Histogram duration;
  prometheus::Histogram time_to_first_output;
  prometheus::Histogram time_per_output;
  prometheus::Histogram inter_output;
  // What a live view shows, as buckets are too coarse for it.
  RecentQuantiles recent_duration;
  RecentQuantiles recent_first_output;
  RecentQuantiles recent_inter_output;

 private:
  uint64_t request_count_ = 0;
  uint64_t failure_count_ = 0;
  uint64_t output_count_ = 0;
};

}  // namespace lockstep::agent
