#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "node/live/job_view.h"

namespace lockstep::export_live {

/// One ExportMetricsServiceRequest in protobuf's bytes.
struct OtlpPayload {
  std::string bytes;
  uint64_t point_count = 0;
};

/// What a job does now as OpenTelemetry's metrics: a resource a rank and one for the job, each figure a gauge (what
/// OpenTelemetry calls a usage is a sum, as there). Names: Figure::metric. Of at most 200 ranks a payload. What was not
/// measured, and what a node that does not answer said before, is not in them. `start_unix_ns`: of the first look.
std::vector<OtlpPayload> MakeOtlpMetrics(const live::JobView& job, int64_t unix_ns, int64_t start_unix_ns,
                                         std::string_view version);

/// What a collector answered to one: how many points it did not take, and why.
struct OtlpReply {
  uint64_t rejected_count = 0;
  std::string message;
};
/// An answer that cannot be read is ignored.
OtlpReply ReadOtlpReply(std::string_view bytes);

}  // namespace lockstep::export_live
