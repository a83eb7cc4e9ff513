#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <vector>

namespace lockstep::agent {

/// How many series an answer may have. A histogram counts each of its lines.
struct SeriesLimits {
  uint64_t of_rank = 400;
  uint64_t of_node = 10'000;
  uint64_t of_job = 2'000;  ///< Besides those of its ranks.
  bool operator==(const SeriesLimits&) const = default;
};

/// Series that were left out, by why.
struct SeriesDrops {
  uint64_t rank = 0;   ///< Their rank has more.
  uint64_t job = 0;    ///< Their job has more that are of no rank.
  uint64_t node = 0;   ///< All together are more.
  uint64_t label = 0;  ///< A label over 256 bytes, or no UTF-8: Prometheus would refuse the whole answer.
};

/// Leaves out series beyond the limits: the program's own values first, then collectives and logs, then requests, then
/// other series of jobs, and last those of no job (GPUs, ports, the node); each in the order of `families`, so that the
/// same ones stay from look to look.
SeriesDrops LimitSeries(const SeriesLimits& limits, std::vector<prometheus::MetricFamily>* families);

}  // namespace lockstep::agent
