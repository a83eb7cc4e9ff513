#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/agent/job_metrics/rank_meter.h"
#include "node/agent/job_metrics/serving_meter.h"
#include "node/agent/sensors/metric_spec.h"

namespace lockstep::agent {

/// What Collect() may have besides ServingMetricSpecs().
const MetricSpecs& JobMetricSpecs();

/// Whose numbers they are.
struct RankIdentity {
  std::string job_id;                ///< Empty: of no job; its pid says which.
  std::optional<int32_t> rank = {};  ///< Nullopt: of no launcher.
  std::optional<int32_t> world_size = {};
  std::optional<int32_t> local_rank = {};
  int32_t pid = 0;
  std::string host;
  std::string user;
  std::string device;  ///< "cuda", "cpu"
};

/// Metrics of this node's ranks for Prometheus: docs/daemon-metrics.md#jobs. A rank's series exist while the rank is
/// reported, those of a job while one of its ranks is. Not thread-safe.
class JobMetrics {
 public:
  /// A rank that is there, recorded or not.
  void See(const RankIdentity& identity);
  /// What it has recorded since. Returns what all of it comes to.
  const RankMeter& Take(const RankIdentity& identity, const ingest::span_follow::Followed& followed,
                        const std::function<const std::string&(uint32_t)>& name_of);
  /// Its process has ended.
  void Forget(int32_t pid);

  std::vector<prometheus::MetricFamily> Collect() const;

 private:
  struct Rank {
    RankIdentity identity;
    std::string job;    ///< Label: the job's id, or "pid-N".
    std::string label;  ///< The rank's number, or "pid-N".
    RankMeter meter;
    bool records = false;
  };
  struct Job {
    prometheus::Histogram step_seconds;
    std::map<std::string, std::unique_ptr<ServingMeter>> serving;  ///< By kind of request.
    Job();
  };

  static void AddRank(const Rank& rank, MetricFamilies* out);

  std::map<int32_t, Rank> ranks_;  ///< By pid.
  std::map<std::string, std::unique_ptr<Job>> jobs_;
};

}  // namespace lockstep::agent
