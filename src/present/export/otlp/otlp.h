#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "model/run.h"

namespace lockstep::otlp {

struct Written {
  uint64_t span_count = 0;
  uint64_t trace_count = 0;  ///< Different trace ids.
};

/// Spans and requests that carry a W3C trace context, of all ranks, as OpenTelemetry's collectors and back ends take
/// them: one ExportTraceServiceRequest in OTLP's JSON, a resource a rank and process, times on the aligned clock. A
/// request is of kind SERVER, with an event at its first output; what failed has status ERROR. `version`: of this
/// program. Cost: O(spans). Format: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
Written WriteOtlp(const model::Run& run, const std::string& version, std::ostream& out);

}  // namespace lockstep::otlp
