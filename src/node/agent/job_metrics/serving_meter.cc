#include "node/agent/job_metrics/serving_meter.h"

#include <algorithm>
#include <vector>

#include "base/nanoseconds.h"
#include "base/now.h"

namespace lockstep::agent {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

// Upper bounds as vLLM has them: request phases (finer ones before them: not all models are large), time to first
// token, time per output token.
Buckets RequestBuckets() {
  return {0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1,   1.5, 2,    2.5, 5,
          10,    15,   20,   30,   40,  50,  60,  120, 240, 480, 960, 1920, 7680};
}
Buckets FirstOutputBuckets() {
  return {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
          1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
}
Buckets PerOutputBuckets() {
  return {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80};
}

}  // namespace

ServingMeter::ServingMeter()
    : duration(RequestBuckets()),
      time_to_first_output(FirstOutputBuckets()),
      time_per_output(PerOutputBuckets()),
      inter_output(PerOutputBuckets()) {}

void ServingMeter::Take(const EndedRequest& request) {
  ++request_count_;
  failure_count_ += request.failed ? 1 : 0;
  output_count_ += std::min(request.output_count, UINT64_MAX - output_count_);
  // The duration of a failed request does not show how long requests take.
  if (request.failed) return;
  // When it ended, not when it was read: of a file that has been there for long all comes at once.
  const int64_t ended_ns = SteadyNow() - std::max<int64_t>(UnixNow() - request.end_ns, 0);
  duration.Observe(Seconds(request.duration_ns));
  recent_duration.Observe(Seconds(request.duration_ns), ended_ns);
  if (request.first_output_ns) {
    time_to_first_output.Observe(Seconds(*request.first_output_ns));
    recent_first_output.Observe(Seconds(*request.first_output_ns), ended_ns);
  }
  if (request.per_output_ns) time_per_output.Observe(Seconds(*request.per_output_ns));
  if (request.gaps_ns.empty()) return;
  static const Buckets kBounds = PerOutputBuckets();
  std::vector<double> counts(kBounds.size() + 1);
  double sum = 0;
  for (const auto& [gap_ns, count] : request.gaps_ns) {
    const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), Seconds(gap_ns)) - kBounds.begin();
    counts[static_cast<size_t>(bucket)] += static_cast<double>(count);
    sum += Seconds(gap_ns) * static_cast<double>(count);
    recent_inter_output.Observe(Seconds(gap_ns), ended_ns, count);
  }
  inter_output.ObserveMultiple(counts, sum);
}

}  // namespace lockstep::agent
