#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"

namespace lockstep::model {

/// Whose part a span is: W3C Trace Context (https://www.w3.org/TR/trace-context/). All 0: none.
struct TraceContext {
  uint64_t trace_high = 0;  ///< Upper half of trace-id.
  uint64_t trace_low = 0;
  uint64_t span_id = 0;    ///< Of the span itself.
  uint64_t parent_id = 0;  ///< span-id of the one it was called from, perhaps in another process; 0 = none.

  bool known() const { return (trace_high | trace_low) != 0; }
};

/// A span with a trace context. Self-contained: rows of tracks move when sorted.
struct LinkedSpan {
  int64_t start_ns = 0;  ///< Trace clock, as EventColumns::start_ns.
  int64_t duration_ns = 0;
  int64_t process_id = 0;
  int64_t thread_id = 0;
  NameId name;
  TraceContext context;
};

/// A request that the program served, from its arrival to its last output.
struct RequestRecord {
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  std::optional<int64_t> first_output_ns = {};  ///< After start_ns: time to first token.
  int64_t output_count = 0;                     ///< Tokens, or what the program counts.
  bool failed = false;
  bool unfinished = false;  ///< Was under way when the recording ended; duration_ns is up to there.
  NameId name;              ///< Kind of request: "generate".
  TraceContext context;
};

}  // namespace lockstep::model
